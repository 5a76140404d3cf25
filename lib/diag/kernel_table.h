/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels that were launched, by name: entry i is entry i of the side file. A launch
 * names its kernel by a function handle, which is looked up first and costs one probe and
 * one comparison of the name (a handle can come back for another kernel after a module
 * was unloaded). Several handles of one name share an entry.
 *
 * Not locked: the owner's lock protects it. Readers of the side file see entries below
 * kernels_used only.
 */
#ifndef RMM_DIAG_KERNEL_TABLE_H
#define RMM_DIAG_KERNEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/pointer_map.h"
#include "diag/diag_format.h"

/* As __cxa_demangle: malloc'ed text or NULL. */
typedef char *(*rmm_demangle_fn)(
    const char *mangled, char *buffer, size_t *bytes, int *status);

typedef struct rmm_kernel_table {
    rmm_pointer_map_t
        by_handle; /* `bytes`: the entry + 1; emptied at four times `capacity` */
    rmm_pointer_map_t by_name; /* by the hash of the name; likewise, never emptied */
    char **names;              /* as launched, whole, one of each entry */
    uint32_t capacity, count;
    rmm_diag_kernel_t *entries; /* in the side file; borrowed */
    rmm_demangle_fn demangle;   /* NULL: names as they are */
} rmm_kernel_table_t;

/* capacity > 0. False: no host memory; nothing is left to undo. */
bool rmm__kernel_table_init(
    rmm_kernel_table_t *table, rmm_diag_kernel_t *entries, uint32_t capacity,
    rmm_demangle_fn demangle);
void rmm__kernel_table_fini(rmm_kernel_table_t *table);

/* The entry of this kernel, made if new, or RMM_DIAG_NO_USER when the table is full.
 * name NULL: it is called by its handle. */
uint32_t rmm__kernel_table_entry(
    rmm_kernel_table_t *table, const void *function, const char *name);

#endif /* RMM_DIAG_KERNEL_TABLE_H */
