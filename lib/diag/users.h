/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in the side file of what uses blocks: kernels, and functions of the driver that copy, fill
 * or prefetch. They have a table each; one number names an entry of either (RMM_DIAG_FUNCTION).
 *
 * Not locked: the engine's lock protects it.
 */
#ifndef RMM_DIAG_USERS_H
#define RMM_DIAG_USERS_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/sys/diag.h>

#include "diag/diag_format.h"
#include "diag/kernel_table.h"

#define RMM_DIAG_FUNCTIONS_COUNT 128u /* the driver has fewer that do one of these */

typedef struct rmm_users {
    rmm_kernel_table_t kernels;
    /* in the side file; borrowed */
    rmm_diag_header_t *header;
    rmm_diag_kernel_t *kernel_entries;
    rmm_diag_function_t *functions;
} rmm_users_t;

/* The borrowed members are set. False: no host memory; nothing is left to undo. */
bool rmm__users_init(
    rmm_users_t *users, uint32_t kernel_count, rmm_demangle_fn demangle);
void rmm__users_fini(rmm_users_t *users);

/* The kernel or function of a launch, copy, fill or prefetch; RMM_DIAG_NO_USER: it has no name, or
 * found no entry. */
uint32_t rmm__users_name(rmm_users_t *users, const rmm_diag_event_v1_t *event);

/* One more launch or call of this user. */
void rmm__users_count(rmm_users_t *users, uint32_t kind, uint32_t user);

#endif /* RMM_DIAG_USERS_H */
