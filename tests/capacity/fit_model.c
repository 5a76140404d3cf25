/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See fit_model.h. The free blocks are an array in address order.
 */
#include "capacity/fit_model.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64

uint64_t fit_rounded(uint64_t bytes)
{
    return (bytes + FIT_UNIT - 1) / FIT_UNIT * FIT_UNIT;
}

bool fit_init(fit_model_t *model, fit_policy_t policy, uint64_t capacity_bytes)
{
    uint64_t bytes = capacity_bytes / FIT_UNIT * FIT_UNIT;
    fit_block_t *blocks = malloc(FIRST_ROOM * sizeof *blocks);
    if (blocks == NULL) {
        return false;
    }
    blocks[0] = (fit_block_t){0, bytes};
    *model = (fit_model_t){
        .policy = policy,
        .blocks = blocks,
        .count = bytes > 0,
        .room = FIRST_ROOM,
    };
    return true;
}

void fit_fini(fit_model_t *model)
{
    free(model->blocks);
    model->blocks = NULL;
    model->count = 0;
}

/* Index of the free block that the policy takes; count: none is large enough. */
static size_t choose(const fit_model_t *model, uint64_t bytes)
{
    size_t chosen = model->count;
    uint64_t smallest = UINT64_MAX;
    for (size_t i = 0; i < model->count; i++) {
        uint64_t length = model->blocks[i].bytes;
        if (length < bytes || length >= smallest) {
            continue;
        }
        chosen = i;
        smallest = length;
        if (length == bytes || model->policy == FIT_FIRST) {
            break;
        }
    }
    return chosen;
}

static void remove_at(fit_model_t *model, size_t index)
{
    model->count--;
    memmove(
        &model->blocks[index], &model->blocks[index + 1],
        (model->count - index) * sizeof *model->blocks);
}

bool fit_alloc(fit_model_t *model, uint64_t bytes, uint64_t *offset)
{
    uint64_t rounded = fit_rounded(bytes);
    if (rounded == 0) {
        *offset = 0;
        return true;
    }
    size_t index = choose(model, rounded);
    if (index == model->count) {
        return false;
    }
    fit_block_t *block = &model->blocks[index];
    *offset = block->offset;
    block->offset += rounded;
    block->bytes -= rounded;
    if (block->bytes == 0) {
        remove_at(model, index);
    }
    return true;
}

/* Index of the first free block above the offset. */
static size_t first_above(const fit_model_t *model, uint64_t offset)
{
    size_t low = 0;
    size_t high = model->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (model->blocks[middle].offset > offset) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static bool insert_at(fit_model_t *model, size_t index, fit_block_t block)
{
    if (model->count == model->room) {
        size_t room = model->room * 2;
        fit_block_t *blocks = realloc(model->blocks, room * sizeof *blocks);
        if (blocks == NULL) {
            return false;
        }
        model->blocks = blocks;
        model->room = room;
    }
    memmove(
        &model->blocks[index + 1], &model->blocks[index],
        (model->count - index) * sizeof *model->blocks);
    model->blocks[index] = block;
    model->count++;
    return true;
}

bool fit_dealloc(fit_model_t *model, uint64_t offset, uint64_t bytes)
{
    uint64_t rounded = fit_rounded(bytes);
    if (rounded == 0) {
        return true;
    }
    size_t index = first_above(model, offset);
    fit_block_t *before = index > 0 ? &model->blocks[index - 1] : NULL;
    fit_block_t *after = index < model->count ? &model->blocks[index] : NULL;
    bool joins_before = before != NULL && before->offset + before->bytes == offset;
    bool joins_after = after != NULL && offset + rounded == after->offset;

    if (joins_before && joins_after) {
        before->bytes += rounded + after->bytes;
        remove_at(model, index);
    } else if (joins_before) {
        before->bytes += rounded;
    } else if (joins_after) {
        after->offset = offset;
        after->bytes += rounded;
    } else {
        return insert_at(model, index, (fit_block_t){offset, rounded});
    }
    return true;
}
