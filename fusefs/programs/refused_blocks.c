/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what refused programs held; see refused_blocks.h. */
#include "programs/refused_blocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "diag/stacks_reader.h"
#include "programs/found.h"
#include "programs/refused.h"
#include "segment/segment_leaks_reader.h"
#include "segments/dirs.h"
#include "support/text.h"

#define PROBES 32u /* of the table */

/* The side file of one program that is to be read. */
typedef struct source {
    uint64_t member_serial;
    uint32_t location;
    bool is_diag;
    rmm_diag_file_t diag;
    rmm_leaks_file_t leaks;
} source_t;

/* --- groups --------------------------------------------------------------------------- */

/* Blocks that one stack allocated, one resource gave and one kernel used first. */
typedef struct group {
    uint64_t key; /* a hash; 0: unused */
    uint64_t bytes, count;
    uint32_t resource_id, user, site; /* user and site: of a diagnosis */
    uint32_t frame_count;
    uint64_t frames[RMM_LEAKS_FRAMES];
} group_t;

typedef struct groups {
    int32_t device; /* as the program numbers it; -1: host memory */
    uint64_t more_bytes;
    group_t items[REFUSED_BLOCKS_GROUPS];
} groups_t;

static void add(groups_t *groups, const group_t *block)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        group_t *group = &groups->items[(block->key + i) % REFUSED_BLOCKS_GROUPS];
        if (group->key == 0) {
            *group = *block;
            return;
        }
        if (group->key == block->key) {
            group->bytes = figure_add(group->bytes, block->bytes);
            group->count += block->count;
            return;
        }
    }
    groups->more_bytes = figure_add(groups->more_bytes, block->bytes);
}

static bool add_leak(const rmm_leak_info_t *leak, void *arg)
{
    groups_t *groups = arg;
    group_t block = {
        .key = rmm__hash(leak->resource_id + UINT64_C(1)),
        .bytes = leak->bytes,
        .count = 1,
        .resource_id = leak->resource_id,
        .user = RMM_DIAG_NO_USER,
        .frame_count = leak->frame_count};
    if (leak->device != groups->device ||
        !figure_is_plausible(RMM_KIND_GAUGE, leak->bytes)) {
        return true;
    }
    for (uint32_t i = 0; i < leak->frame_count; i++) {
        block.frames[i] = leak->frames[i];
        block.key = rmm__hash(block.key ^ leak->frames[i]);
    }
    block.key |= 1;
    add(groups, &block);
    return true;
}

static bool add_row(const rmm_diag_row_info_t *row, void *arg)
{
    groups_t *groups = arg;
    group_t block = {
        .bytes = row->bytes,
        .count = 1,
        .resource_id = row->resource_id,
        .user = row->first_user,
        .site = row->site};
    block.key = rmm__hash((uint64_t)row->resource_id << 32 | row->first_user);
    block.key = rmm__hash(block.key ^ row->site) | 1;
    if (row->device == groups->device &&
        figure_is_plausible(RMM_KIND_GAUGE, row->bytes)) {
        add(groups, &block);
    }
    return true;
}

static int by_bytes(const void *left, const void *right)
{
    const group_t *a = left, *b = right;
    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? 1 : -1;
    }
    return (a->key > b->key) - (a->key < b->key);
}

/* --- stacks --------------------------------------------------------------------------- */

/* A frame, as FILE+OFFSET with the path of the file; false: there is no room for it. */
static bool put_frame(char stack[REFUSAL_STACK_BYTES], const char *path, uint64_t at)
{
    size_t used = strlen(stack);
    int length = snprintf(
        stack + used, REFUSAL_STACK_BYTES - used, "%s%s%s0x%" PRIx64,
        used > 0 ? ";" : "", path, path[0] != '\0' ? "+" : "", at);
    if (length < 0 || (size_t)length >= REFUSAL_STACK_BYTES - used) {
        stack[used] = '\0';
        return false;
    }
    return true;
}

/* Another process wrote it, and ';' and white space end a frame in a table. */
static void clean_path(char *path)
{
    for (; *path != '\0'; path++) {
        *path = text_shown(*path, '?');
        *path = *path == ';' || *path == ' ' ? '?' : *path;
    }
}

static void put_site(const rmm_diag_file_t *file, uint32_t site, refusal_group_t *out)
{
    rmm_diag_stack_info_t stack;
    bool fits = rmm__diag_read_site(file, site, &stack);
    for (uint32_t i = 0; fits && i < stack.frame_count; i++) {
        rmm_diag_module_info_t module = {.path = ""};
        (void)rmm__diag_read_module(file, stack.modules[i], &module);
        clean_path(module.path);
        fits = put_frame(out->stack, module.path, stack.offsets[i]);
    }
}

/* The file that each frame of the largest groups is in: the last one of the list that has it. */
typedef struct places {
    const group_t *groups;
    uint32_t count;
    struct {
        char path[RMM_LEAKS_PATH_BYTES]; /* "": none is known */
        uint64_t base;
    } of[REFUSAL_GROUPS_MAX][RMM_LEAKS_FRAMES];
} places_t;

static bool note_module(const rmm_leaks_module_t *module, void *arg)
{
    places_t *places = arg;
    for (uint32_t i = 0; i < places->count; i++) {
        const group_t *group = &places->groups[i];
        for (uint32_t j = 0; j < group->frame_count; j++) {
            uint64_t frame = group->frames[j]; /* behind the call */
            if (frame > module->begin && frame <= module->end) {
                memcpy(places->of[i][j].path, module->path, sizeof(module->path));
                places->of[i][j].base = module->base;
            }
        }
    }
    return true;
}

static void put_stacks(
    const rmm_leaks_file_t *file, const group_t *groups, uint32_t count,
    refusal_blocks_t *out)
{
    places_t *places = calloc(1, sizeof(*places)); /* 33 KiB */
    if (places == NULL) {
        return;
    }
    places->groups = groups;
    places->count = count;
    rmm__leaks_each_module(file, note_module, places);
    for (uint32_t i = 0; i < count; i++) {
        bool fits = true;
        for (uint32_t j = 0; fits && j < groups[i].frame_count; j++) {
            clean_path(places->of[i][j].path);
            fits = put_frame(
                out->groups[i].stack, places->of[i][j].path,
                groups[i].frames[j] - places->of[i][j].base);
        }
    }
    free(places);
}

/* --- one program ---------------------------------------------------------------------- */

static void put_groups(const source_t *source, groups_t *groups, refusal_blocks_t *out)
{
    qsort(groups->items, REFUSED_BLOCKS_GROUPS, sizeof(groups->items[0]), by_bytes);
    out->more_bytes = groups->more_bytes;
    for (uint32_t i = 0; i < REFUSED_BLOCKS_GROUPS && groups->items[i].key != 0; i++) {
        const group_t *group = &groups->items[i];
        if (i >= REFUSAL_GROUPS_MAX) {
            out->more_bytes = figure_add(out->more_bytes, group->bytes);
            continue;
        }
        refusal_group_t *shown = &out->groups[out->count++];
        shown->bytes = group->bytes;
        shown->count = group->count;
        shown->resource_id = group->resource_id;
        if (source->is_diag) {
            char kernel[RMM_DIAG_NAME_BYTES];
            (void)rmm__diag_read_user(&source->diag, group->user, kernel);
            (void)snprintf(
                shown->kernel, sizeof(shown->kernel), "%.*s",
                (int)sizeof(shown->kernel) - 1, kernel);
            put_site(&source->diag, group->site, shown);
        }
    }
    if (!source->is_diag) {
        put_stacks(&source->leaks, groups->items, out->count, out);
    }
}

/* NULL: no memory. */
static refusal_blocks_t *read_blocks(const source_t *source, memory_t *memory)
{
    size_t bytes = sizeof(groups_t) + sizeof(places_t) + sizeof(refusal_blocks_t);
    groups_t *groups = memory_take(memory, bytes) ? calloc(1, sizeof(*groups)) : NULL;
    refusal_blocks_t *out = groups != NULL ? calloc(1, sizeof(refusal_blocks_t)) : NULL;
    if (out != NULL) {
        groups->device = source->location == RMM_SEGMENT_HOST_LOCATION
                             ? -1
                             : (int32_t)source->location;
        if (source->is_diag) {
            (void)rmm__diag_each_row(&source->diag, add_row, groups);
        } else {
            (void)rmm__leaks_each(&source->leaks, add_leak, groups);
        }
        put_groups(source, groups, out);
        out->clock_ns = model_clock_ns();
    }
    free(groups);
    return out;
}

/* --- refusals that wait --------------------------------------------------------------- */

static bool is_of(const refusal_t *refusal, const source_t *source)
{
    return refusal->member_serial == source->member_serial &&
           refusal->location == source->location;
}

/* Lock held alone. To those that wait; the caller's reference goes. NULL: there are none. */
static void give(refusals_t *list, const source_t *source, refusal_blocks_t *blocks)
{
    for (uint32_t i = 0; i < list->count; i++) {
        refusal_t *refusal = list->items[i];
        if (refusal->wants_blocks && is_of(refusal, source)) {
            refusal->wants_blocks = false;
            refusal->blocks = blocks;
            if (blocks != NULL) {
                blocks->references++;
            }
        }
    }
}

/* Those that another refusal of the program had a moment ago; NULL: none. */
static refusal_blocks_t *find_given(const refusals_t *list, const source_t *source)
{
    uint64_t now = model_clock_ns();
    for (uint32_t i = list->count; i > 0; i--) {
        const refusal_t *refusal = list->items[i - 1];
        if (refusal->blocks != NULL && is_of(refusal, source)) {
            return now - refusal->blocks->clock_ns < REFUSED_SCENE_NS ? refusal->blocks
                                                                      : NULL;
        }
    }
    return NULL;
}

static bool open_source(const model_t *model, source_t *source)
{
    const member_t *member = model_member(model, (uint32_t)source->member_serial);
    if (member == NULL || member->dir == NULL) {
        return false;
    }
    source->is_diag = member_open_diag(member, &source->diag);
    return source->is_diag || rmm__leaks_open(
                                  &source->leaks, member->dir->fd, member->segment.name,
                                  member->segment.uid) == 0;
}

/* Lock held alone. False: none is left that has something to read. */
static bool open_next(model_t *model, source_t *source)
{
    refusals_t *list = &model->refusals;
    for (uint32_t i = 0; i < list->count; i++) {
        const refusal_t *refusal = list->items[i];
        if (!refusal->wants_blocks) {
            continue;
        }
        source->member_serial = refusal->member_serial;
        source->location = refusal->location;
        refusal_blocks_t *given = find_given(list, source);
        if (given == NULL && open_source(model, source)) {
            return true;
        }
        give(list, source, given);
    }
    atomic_store_explicit(&list->wants_blocks, false, memory_order_relaxed);
    return false;
}

static bool take_next(model_t *model)
{
    source_t source;
    pthread_rwlock_wrlock(&model->lock);
    bool found = open_next(model, &source);
    pthread_rwlock_unlock(&model->lock);
    if (!found) {
        return false;
    }
    refusal_blocks_t *blocks = read_blocks(&source, &model->budget.memory);
    if (source.is_diag) {
        rmm__diag_close(&source.diag);
    } else {
        rmm__leaks_close(&source.leaks);
    }
    pthread_rwlock_wrlock(&model->lock);
    give(&model->refusals, &source, blocks);
    pthread_rwlock_unlock(&model->lock);
    if (blocks != NULL && blocks->references == 0) {
        free(blocks); /* the refusals are gone meanwhile */
    }
    return true;
}

/* What was spent beyond the share. */
static uint64_t debt_now(refusals_t *list, uint64_t now)
{
    uint64_t paid = (now - list->blocks_debt_at_ns) / REFUSED_BLOCKS_SHARE;
    list->blocks_debt_ns -= paid < list->blocks_debt_ns ? paid : list->blocks_debt_ns;
    list->blocks_debt_at_ns = now;
    return list->blocks_debt_ns;
}

bool refused_blocks_take(model_t *model)
{
    refusals_t *list = &model->refusals;
    bool more = atomic_load_explicit(&list->wants_blocks, memory_order_relaxed);
    if (!more) {
        return false;
    }
    pthread_mutex_lock(&list->blocks_lock);
    while (more && debt_now(list, model_clock_ns()) < REFUSED_BLOCKS_CREDIT_NS) {
        uint64_t begin = rmm__clock_ns(CLOCK_THREAD_CPUTIME_ID);
        more = take_next(model);
        list->blocks_debt_ns += rmm__clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    }
    pthread_mutex_unlock(&list->blocks_lock);
    return more;
}
