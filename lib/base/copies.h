/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two copies of this library in one process: a program linked with the archive that loads a
 * plugin, or a Python wheel, which brings the shared library; or two files of the shared
 * library, of two sonames or loaded by their paths. Both work, but each has default
 * resources and statistics of its own, and neither knows the other's blocks. Nothing would
 * show that, so the second copy that makes a resource logs one warning.
 *
 * Each copy has an ELF note that leads to its rmm_copy_t. Copies find each other through
 * the notes of all loaded modules, whether they export symbols or not. The note and the type
 * are an interface between versions of the library: fields are only appended.
 *
 * Threads: any. Cost: the first resource of a process looks at the headers of each module.
 */
#ifndef RMM_BASE_COPIES_H
#define RMM_BASE_COPIES_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct rmm_copy {
    uint32_t struct_bytes;
    uint32_t version;            /* as rmm_version() */
    _Atomic(uint32_t) is_in_use; /* it has made a resource */
    uint32_t reserved;
} rmm_copy_t;

/* This copy makes a resource. Logs, so the caller holds no lock. */
void rmm__copies_use(void);

#endif /* RMM_BASE_COPIES_H */
