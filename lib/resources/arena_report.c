/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error message and the dump when a request finds no room. It reads one arena after
 * the other, so the figures of a busy arena resource need not add up. If the dump
 * cannot be written, one line in the log says so.
 */
#include "resources/arena_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "core/local_time.h"
#include "core/output.h"
#include "core/uncancelled.h"
#include "log/log.h"
#include "pool/engine_figures.h"

typedef struct arena_figures {
    uint64_t superblock_count, superblock_bytes;
    uint64_t free_bytes, largest_free_bytes, live_blocks;
    bool exists;
} arena_figures_t;

typedef struct report {
    size_t requested_bytes;
    arena_figures_t total;
    arena_figures_t arenas[ARENA_SHARDS + 1]; /* the last: the global one */
} report_t;

/* A shard's superblock counts in that shard, and is a live block of the global arena. */
static bool count_superblock(void *context, const rmm_block_info_t *info)
{
    arena_figures_t *figures = context;

    if (info->heap == RMM_HEAP_NONE && info->tag == TAG_SUPERBLOCK) {
        figures->superblock_count++;
        figures->superblock_bytes += info->units * RMM_BLOCKS_UNIT;
    }
    return true;
}

static void look_at_arena(arena_resource_t *self, uint32_t index, report_t *report)
{
    engine_t *engine = rmm__arena_at(self, index);
    arena_figures_t *figures = &report->arenas[index];

    if (engine == NULL) {
        return;
    }
    figures->exists = true;
    rmm__mutex_lock(&engine->lock);
    figures->largest_free_bytes = engine->figures.largest_free_bytes;
    figures->free_bytes = rmm__engine_free_bytes_locked(engine);
    figures->live_blocks = rmm__blocks_live_count(engine->blocks);
    if (index == ARENA_GLOBAL && self->dump_path != NULL) {
        rmm__blocks_walk(engine->blocks, count_superblock, figures);
    }
    rmm__mutex_unlock(&engine->lock);
    figures->live_blocks -= figures->superblock_count;
}

static void look(arena_resource_t *self, report_t *report)
{
    arena_figures_t *total = &report->total;

    for (uint32_t i = 0; i <= ARENA_GLOBAL; i++) {
        const arena_figures_t *figures = &report->arenas[i];

        look_at_arena(self, i, report);
        total->superblock_count += figures->superblock_count;
        total->superblock_bytes += figures->superblock_bytes;
        total->free_bytes += figures->free_bytes;
        total->live_blocks += figures->live_blocks;
        if (figures->largest_free_bytes > total->largest_free_bytes) {
            total->largest_free_bytes = figures->largest_free_bytes;
        }
    }
}

/* How much of what is free is not in one piece; 0 where nothing is free. */
static double fragmentation_of(const arena_figures_t *figures)
{
    return figures->free_bytes == 0 ? 0.0
                                    : 1.0 - (double)figures->largest_free_bytes /
                                                (double)figures->free_bytes;
}

/* --- the dump ----------------------------------------------------------------------- */

static void print_dump(FILE *file, const arena_resource_t *self, const report_t *report)
{
    const arena_figures_t *total = &report->total;
    struct tm utc;

    rmm__utc_time(time(NULL), &utc);
    fprintf(
        file, "arena '%s' (%" PRIu32 ") at %d-%02d-%02dT%02d:%02d:%02dZ\n",
        self->pool.base.name, self->pool.base.instance_id, utc.tm_year + 1900,
        utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
    fprintf(file, "requested bytes: %zu\n", report->requested_bytes);
    fprintf(file, "arena size: %" PRIu64 "\n", self->bytes);
    fprintf(file, "number of superblocks: %" PRIu64 "\n", total->superblock_count);
    fprintf(file, "superblock bytes: %" PRIu64 "\n", total->superblock_bytes);
    fprintf(file, "live blocks: %" PRIu64 "\n", total->live_blocks);
    fprintf(file, "total free: %" PRIu64 "\n", total->free_bytes);
    fprintf(file, "largest free block: %" PRIu64 "\n", total->largest_free_bytes);
    fprintf(file, "fragmentation: %.2f%%\n", 100.0 * fragmentation_of(total));
    for (uint32_t i = 0; i <= ARENA_GLOBAL; i++) {
        const arena_figures_t *figures = &report->arenas[ARENA_GLOBAL - i];
        char name[16] = "global";

        if (i != 0) {
            snprintf(name, sizeof(name), "%" PRIu32, ARENA_GLOBAL - i);
        }
        if (figures->exists) {
            fprintf(
                file,
                "arena %s: live blocks %" PRIu64 ", free %" PRIu64
                ", largest free block %" PRIu64 ", fragmentation %.2f%%\n",
                name, figures->live_blocks, figures->free_bytes,
                figures->largest_free_bytes, 100.0 * fragmentation_of(figures));
        }
    }
}

/* 0, or the errno that says why not. A pipe without a reader is an error, no wait. */
static int write_text(const char *path, const char *text, size_t length)
{
    int fd = rmm__descriptor_above_standard(open(
        path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644));
    int error;

    if (fd < 0) {
        return errno;
    }
    error = rmm__output_put(fd, text, length, NULL) == length ? 0 : errno;
    return close(fd) != 0 && error == 0 ? errno : error;
}

static int write_dump(const arena_resource_t *self, const report_t *report)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    int error = ENOMEM;

    if (file == NULL) {
        return error;
    }
    print_dump(file, self, report);
    if (fclose(file) == 0) {
        error = write_text(self->dump_path, text, length);
    }
    free(text);
    return error;
}

static void dump(arena_resource_t *self, const report_t *report)
{
    RMM_UNCANCELLED;
    int error;

    rmm__mutex_lock(&self->dump_lock);
    error = write_dump(self, report);
    rmm__mutex_unlock(&self->dump_lock);
    if (error != 0) {
        rmm__log_error(
            "arena '%s' (%" PRIu32 "): cannot write its dump to '%s': %s (%d)",
            self->pool.base.name, self->pool.base.instance_id, self->dump_path,
            strerror(error), error);
    }
}

/* --- the error ---------------------------------------------------------------------- */

rmm_status_t rmm__arena_give_up(
    arena_resource_t *self, const rmm_request_t *request, const char *why)
{
    report_t report = {.requested_bytes = request->bytes};
    engine_figures_t figures = {.reserved_bytes = self->bytes};

    look(self, &report);
    if (self->dump_path != NULL) {
        dump(self, &report);
    }
    figures.free_bytes = report.total.free_bytes;
    figures.largest_free_bytes = report.total.largest_free_bytes;
    return rmm__pool_say_no_room(
        &self->pool, request, RMM_ERR_OUT_OF_MEMORY, RMM_DRIVER_OK, &figures, why);
}
