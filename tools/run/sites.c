/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation sites of a report; see sites.h. */
#include "run/sites.h"

#include <stdlib.h>

bool run_sites_init(run_sites_t *sites, uint32_t capacity)
{
    *sites = (run_sites_t){
        .sites = calloc(capacity, sizeof(sites->sites[0])), .capacity = capacity};
    return sites->sites != NULL;
}

void run_sites_free(run_sites_t *sites)
{
    for (uint32_t i = 0; i < sites->count; i++) {
        run_stack_free(&sites->sites[i].stack);
    }
    free(sites->sites);
    *sites = (run_sites_t){.count = 0};
}

const run_stack_t *run_sites_find(
    run_sites_t *sites, uint32_t number, const rmm_diag_file_t *file,
    run_symbols_t *symbols)
{
    for (uint32_t i = 0; i < sites->count; i++) {
        if (sites->sites[i].number == number) {
            return &sites->sites[i].stack;
        }
    }
    if (sites->count == sites->capacity) {
        return NULL;
    }
    run_site_t *site = &sites->sites[sites->count++];
    site->number = number;
    return run_stack_read_site(&site->stack, file, number, symbols) ? &site->stack
                                                                    : NULL;
}
