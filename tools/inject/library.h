/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The librmm-c that counts what the program takes from the driver itself: the program's own
 * if it has one, else the one that is installed beside this library.
 */
#ifndef RMM_TOOLS_INJECT_LIBRARY_H
#define RMM_TOOLS_INJECT_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/sys/diag.h>

typedef struct inject_library {
    rmm_status_t (*driver_alloc)(const rmm_diag_block_v1_t *block);
    uint64_t (*driver_free)(const rmm_diag_block_v1_t *block);
    void (*driver_forget)(void);
    bool (*in_library)(void);
} inject_library_t;

/* False: there is none, or an older one. Loads a library, so not in a callback. */
bool inject_library_open(inject_library_t *library);

/* rmm_diag_copies_v1() of the librmm-c that is loaded; NULL: none is, or an older one. */
typedef bool (*inject_library_fn)(void);
inject_library_fn inject_library_copies(void);

#endif /* RMM_TOOLS_INJECT_LIBRARY_H */
