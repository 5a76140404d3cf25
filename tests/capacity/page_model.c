/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See page_model.h.
 */
#include "capacity/page_model.h"

#include <stdlib.h>

bool page_model_init(page_model_t *model, uint64_t peak_bytes, uint64_t page_bytes)
{
    uint64_t bytes = PAGE_MODEL_ADDRESSES_OVER_PEAK * fit_rounded(peak_bytes);
    uint64_t page_count = bytes / page_bytes + 1;
    *model = (page_model_t){.page_bytes = page_bytes};
    model->blocks_on_page = calloc(page_count, sizeof *model->blocks_on_page);
    if (model->blocks_on_page == NULL) {
        return false;
    }
    if (!fit_init(&model->addresses, FIT_FIRST, bytes)) {
        free(model->blocks_on_page);
        return false;
    }
    return true;
}

void page_model_fini(page_model_t *model)
{
    fit_fini(&model->addresses);
    free(model->blocks_on_page);
}

bool page_model_alloc(page_model_t *model, uint64_t bytes, uint64_t *offset)
{
    if (!fit_alloc(&model->addresses, bytes, offset)) {
        return false;
    }
    uint64_t end = *offset + fit_rounded(bytes);
    for (uint64_t page = *offset / model->page_bytes; page * model->page_bytes < end;
         page++) {
        model->used_pages += model->blocks_on_page[page]++ == 0;
    }
    if (model->used_pages > model->most_pages) {
        model->most_pages = model->used_pages;
    }
    return true;
}

bool page_model_dealloc(page_model_t *model, uint64_t offset, uint64_t bytes)
{
    uint64_t end = offset + fit_rounded(bytes);
    for (uint64_t page = offset / model->page_bytes; page * model->page_bytes < end;
         page++) {
        model->used_pages -= --model->blocks_on_page[page] == 0;
    }
    return fit_dealloc(&model->addresses, offset, bytes);
}
