/* SPDX-License-Identifier: Apache-2.0 */
/* Names of users; see users.h. Cost: one probe of a table. */
#include "diag/users.h"

#include <string.h>

#include "diag/row.h"

bool rmm__users_init(
    rmm_users_t *users, uint32_t kernel_count, rmm_demangle_fn demangle)
{
    return rmm__kernel_table_init(
        &users->kernels, users->kernel_entries, kernel_count, demangle);
}

void rmm__users_fini(rmm_users_t *users)
{
    rmm__kernel_table_fini(&users->kernels);
}

static uint32_t name_kernel(rmm_users_t *users, const rmm_diag_event_v1_t *event)
{
    uint32_t entry =
        rmm__kernel_table_entry(&users->kernels, event->function, event->name);

    /* release: the entry's name is written; pairs with a reader's load */
    atomic_store_explicit(
        &users->header->kernels.used, users->kernels.count, memory_order_release);
    return entry;
}

static void add_function(rmm_users_t *users, uint32_t entry, const char *name)
{
    char *to = users->functions[entry].name;
    size_t i = 0;

    for (; i + 1 < sizeof(users->functions[0].name) && name[i] != '\0'; i++) {
        to[i] = name[i];
    }
    /* release: the name is written; pairs with a reader's first look */
    atomic_store_explicit(
        &users->header->functions.used, entry + 1, memory_order_release);
}

static bool is_called(const rmm_diag_function_t *function, const char *name)
{
    return strncmp(function->name, name, sizeof(function->name) - 1) == 0;
}

static uint32_t name_function(rmm_users_t *users, const char *name)
{
    uint32_t used = RMM_ROW_GET(users->header, functions.used);
    uint32_t i = 0;

    if (name == NULL || name[0] == '\0') {
        return RMM_DIAG_NO_USER;
    }
    used = used < RMM_DIAG_FUNCTIONS_COUNT ? used : RMM_DIAG_FUNCTIONS_COUNT;
    while (i < used && !is_called(&users->functions[i], name)) {
        i++;
    }
    if (i == RMM_DIAG_FUNCTIONS_COUNT) {
        return RMM_DIAG_NO_USER;
    }
    if (i == used) {
        add_function(users, i, name);
    }
    return RMM_DIAG_FUNCTION | i;
}

uint32_t rmm__users_name(rmm_users_t *users, const rmm_diag_event_v1_t *event)
{
    return event->kind == RMM_DIAG_LAUNCH ? name_kernel(users, event)
                                          : name_function(users, event->name);
}

void rmm__users_count(rmm_users_t *users, uint32_t kind, uint32_t user)
{
    if (user == RMM_DIAG_NO_USER) {
        RMM_ROW_ADD(&users->header->launches_unnamed, kind == RMM_DIAG_LAUNCH);
    } else if ((user & RMM_DIAG_FUNCTION) != 0) {
        RMM_ROW_ADD(&users->functions[user & ~RMM_DIAG_FUNCTION].calls, 1);
    } else {
        RMM_ROW_ADD(&users->kernel_entries[user].launches, 1);
    }
}
