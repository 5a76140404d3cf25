/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and prints the live blocks. Everything is copied first, under the lock, and then
 * sorted and printed without it, because printing may block.
 */
#include "adaptors/tracking_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"
#include "core/host_memory.h"
#include "core/output.h"
#include "core/uncancelled.h"
#include "log/log.h"

#define LEAKS_MAX 100u /* reported one by one at the end */

/* --- the copy ----------------------------------------------------------------------- */

static size_t frames_of(const rmm_pointer_map_entry_t *entry)
{
    const rmm_call_stack_t *stack = rmm__tracking_stack(entry);

    return stack != NULL ? stack->count : 0;
}

/* Blocks first, then all frames, in one piece of memory. */
typedef struct copy {
    rmm_tracking_block_t *blocks;
    size_t bytes; /* of the memory */
    size_t count;
} copy_t;

static size_t bytes_needed_locked(const tracking_t *self)
{
    const rmm_pointer_map_t *map = &self->blocks;
    size_t bytes = map->count * sizeof(rmm_tracking_block_t);

    RMM_ASSERT_LOCKED(&self->adaptor.lock);
    for (size_t i = 0; self->max_frames != 0 && i < map->capacity; i++) {
        if (map->entries[i].ptr != NULL) {
            bytes += frames_of(&map->entries[i]) * sizeof(void *);
        }
    }
    return bytes;
}

static void fill_locked(const tracking_t *self, copy_t *copy)
{
    const rmm_pointer_map_t *map = &self->blocks;
    void **frames = (void **)(void *)(copy->blocks + map->count);

    for (size_t i = 0; i < map->capacity; i++) {
        const rmm_pointer_map_entry_t *entry = &map->entries[i];
        const rmm_call_stack_t *stack = rmm__tracking_stack(entry);
        size_t frame_count = frames_of(entry);

        if (entry->ptr == NULL) {
            continue;
        }
        copy->blocks[copy->count++] = (rmm_tracking_block_t){
            .ptr = entry->ptr,
            .bytes = entry->bytes,
            .frames = frame_count != 0 ? frames : NULL,
            .frame_count = frame_count};
        if (frame_count != 0) {
            memcpy(frames, stack->frames, frame_count * sizeof(*frames));
            frames += frame_count;
        }
    }
}

/* One try: true when it fitted; else `bytes` is what is needed now. */
static bool try_copy(tracking_t *self, copy_t *copy)
{
    size_t needed;

    rmm__mutex_lock(&self->adaptor.lock);
    needed = bytes_needed_locked(self);
    if (needed <= copy->bytes) {
        if (needed != 0) {
            fill_locked(self, copy);
        }
        copy->bytes = needed;
        rmm__mutex_unlock(&self->adaptor.lock);
        return true;
    }
    rmm__mutex_unlock(&self->adaptor.lock);
    copy->bytes = needed + needed / 8; /* some may come in the meantime */
    return false;
}

static int by_address(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t)((const rmm_tracking_block_t *)left)->ptr;
    uintptr_t b = (uintptr_t)((const rmm_tracking_block_t *)right)->ptr;

    return (a > b) - (a < b);
}

static rmm_status_t copy_blocks(tracking_t *self, copy_t *copy)
{
    *copy = (copy_t){NULL, 0, 0};
    while (!try_copy(self, copy)) {
        rmm__free(copy->blocks);
        copy->blocks = rmm__calloc(1, copy->bytes);
        if (copy->blocks == NULL) {
            return RMM_ERR_OUT_OF_HOST_MEMORY;
        }
    }
    if (copy->count == 0) { /* they have gone since the first try */
        rmm__free(copy->blocks);
        copy->blocks = NULL;
    } else {
        qsort(copy->blocks, copy->count, sizeof(copy->blocks[0]), by_address);
    }
    return RMM_OK;
}

/* --- print -------------------------------------------------------------------------- */

/* Text of a growing length, of which the first bytes are kept. */
typedef struct text {
    char *buffer;
    size_t bytes;  /* of it; 0: it may be NULL */
    size_t length; /* of all so far */
} text_t;

/* Where a line goes: a text, else a descriptor, else the log. */
typedef struct printer {
    text_t *text;
    int fd;
    rmm_log_level_t level;
    const char *name;
} printer_t;

static void add_line(text_t *text, const char *line)
{
    size_t room = text->bytes > text->length ? text->bytes - text->length : 0;
    char *end = room != 0 ? text->buffer + text->length : NULL;

    text->length += (size_t)snprintf(end, room, "%s\n", line);
}

static bool write_line(int fd, const char *line)
{
    char text[RMM_FRAME_BYTES + 64];
    size_t length = (size_t)snprintf(text, sizeof(text), "%s\n", line);

    return rmm__output_put(fd, text, length, NULL) == length;
}

/* False if it cannot be written. */
static bool print_line(const printer_t *printer, const char *line)
{
    if (printer->text != NULL) {
        add_line(printer->text, line);
        return true;
    }
    if (printer->fd >= 0) {
        return write_line(printer->fd, line);
    }
    RMM_LOG_AT(printer->level, "tracking '%s': %s", printer->name, line);
    return true;
}

static bool print_block(const printer_t *printer, const rmm_tracking_block_t *block)
{
    char line[RMM_FRAME_BYTES + 32];
    char frame[RMM_FRAME_BYTES];
    size_t first = rmm__call_stack_own_frames(block->frames, block->frame_count);

    snprintf(
        line, sizeof(line), "%p: %zu B%s", block->ptr, block->bytes,
        block->frame_count != 0 ? " : callstack:" : "");
    if (!print_line(printer, line)) {
        return false;
    }
    for (size_t i = first; i < block->frame_count; i++) {
        rmm__call_stack_describe(block->frames[i], frame);
        snprintf(line, sizeof(line), "#%zu in %s", i - first, frame);
        if (!print_line(printer, line)) {
            return false;
        }
    }
    return true;
}

static bool print_blocks(const printer_t *printer, const copy_t *copy, size_t most)
{
    for (size_t i = 0; i < copy->count && i < most; i++) {
        if (!print_block(printer, &copy->blocks[i])) {
            return false;
        }
    }
    return true;
}

void rmm__tracking_report_leaks(tracking_t *self)
{
    const printer_t printer = {NULL, -1, RMM_LEVEL_ERROR, self->adaptor.base.name};
    copy_t copy;

    if (self->blocks.count == 0 || copy_blocks(self, &copy) != RMM_OK) {
        return; /* how much it is was logged already */
    }
    (void)print_blocks(&printer, &copy, LEAKS_MAX);
    if (copy.count > LEAKS_MAX) {
        rmm__log_error(
            "tracking '%s': %zu more live blocks are not listed",
            self->adaptor.base.name, copy.count - LEAKS_MAX);
    }
    rmm__free(copy.blocks);
}

/* --- public ------------------------------------------------------------------------- */

rmm_status_t rmm_tracking_outstanding(
    rmm_resource_t *mr, rmm_tracking_block_t **blocks_out, size_t *count_out)
{
    tracking_t *self;
    copy_t copy;
    rmm_status_t status;

    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    RMM_CHECK_ARG(blocks_out != NULL, "blocks_out is NULL");
    RMM_CHECK_ARG(count_out != NULL, "count_out is NULL");
    self = rmm__tracking_from(mr);
    RMM_CHECK_ARG(self != NULL, "the resource is not a tracking adaptor");
    status = copy_blocks(self, &copy);
    if (status == RMM_OK) {
        *blocks_out = copy.blocks;
        *count_out = copy.count;
    }
    return status;
}

void rmm_tracking_free(rmm_tracking_block_t *blocks)
{
    rmm__free(blocks);
}

rmm_status_t rmm_tracking_report(rmm_resource_t *mr, int fd)
{
    RMM_UNCANCELLED;
    printer_t printer = {NULL, fd, RMM_LEVEL_INFO, NULL};
    tracking_t *self;
    copy_t copy;
    rmm_status_t status;

    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    RMM_CHECK_ARG(fd >= RMM_TRACKING_TO_LOG, "fd is not a file descriptor");
    self = rmm__tracking_from(mr);
    RMM_CHECK_ARG(self != NULL, "the resource is not a tracking adaptor");
    status = copy_blocks(self, &copy);
    if (status != RMM_OK) {
        return status;
    }
    printer.name = mr->name;
    if (copy.count == 0 && fd == RMM_TRACKING_TO_LOG) {
        rmm__log_info("tracking '%s': no block is live", mr->name);
    }
    if (!print_blocks(&printer, &copy, SIZE_MAX)) {
        status = rmm__error(
            RMM_ERR_IO, "tracking '%s': writing the report failed: %s", mr->name,
            strerror(errno));
    }
    rmm__free(copy.blocks);
    return status;
}

rmm_status_t rmm_tracking_report_to_buffer(
    rmm_resource_t *mr, char *buffer, size_t bytes, size_t *length_out)
{
    text_t text = {buffer, bytes, 0};
    const printer_t printer = {.text = &text};
    tracking_t *self;
    copy_t copy;
    rmm_status_t status;

    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    RMM_CHECK_ARG(buffer != NULL || bytes == 0, "buffer is NULL");
    RMM_CHECK_ARG(length_out != NULL, "length_out is NULL");
    self = rmm__tracking_from(mr);
    RMM_CHECK_ARG(self != NULL, "the resource is not a tracking adaptor");
    status = copy_blocks(self, &copy);
    if (status != RMM_OK) {
        return status;
    }
    if (bytes != 0) {
        buffer[0] = '\0'; /* where nothing is out */
    }
    (void)print_blocks(&printer, &copy, SIZE_MAX);
    *length_out = text.length;
    rmm__free(copy.blocks);
    return RMM_OK;
}
