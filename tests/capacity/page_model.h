/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How little physical memory a pool needs that can map pages anywhere: addresses of 16 times
 * the peak are served by first fit, and a page counts while a live block touches it. The
 * most pages that ever count are a lower bound for the capacity of this placement.
 */
#ifndef RMM_TESTS_CAPACITY_PAGE_MODEL_H
#define RMM_TESTS_CAPACITY_PAGE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "capacity/fit_model.h"

#define PAGE_MODEL_ADDRESSES_OVER_PEAK 16

typedef struct page_model {
    fit_model_t addresses;
    uint64_t page_bytes;
    uint32_t *blocks_on_page; /* live blocks that touch each page */
    uint64_t used_pages;
    uint64_t most_pages;
} page_model_t;

/* The page is a multiple of FIT_UNIT. False: no memory, nothing held. */
bool page_model_init(page_model_t *model, uint64_t peak_bytes, uint64_t page_bytes);
void page_model_fini(page_model_t *model);

/* False: the addresses do not suffice. */
bool page_model_alloc(page_model_t *model, uint64_t bytes, uint64_t *offset);

/* False: no memory. */
bool page_model_dealloc(page_model_t *model, uint64_t offset, uint64_t bytes);

#endif /* RMM_TESTS_CAPACITY_PAGE_MODEL_H */
