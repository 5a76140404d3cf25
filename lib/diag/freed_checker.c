/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up freed blocks: what a call or a launch is given, if it is in no live block.
 *
 * A copy, fill or prefetch of freed memory is certain to be an error. A kernel may have been given
 * a pointer that it does not follow, so that is likely to be one. It is taken for the end of
 * an array, and no error, if a live block ends there.
 *
 * Memory that went back to the driver stays known until a block takes it. Meanwhile the host may
 * get these addresses for other memory, so an address that the host can read does not count as
 * freed.
 *
 * The order of streams does not matter: the host makes the call after the free, and by then the
 * memory may belong to another block.
 */
#include "diag/freed_checker.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "diag/event_range.h"
#include "diag/row.h"

typedef struct state {
    rmm_diag_engine_t *engine;
    rmm_freed_t freed;
    rmm_driver_memory_t driver_memory;
} state_t;

static bool
init(void *state, rmm_diag_engine_t *engine, const rmm_diag_engine_desc_t *desc)
{
    state_t *self = state;

    self->engine = engine;
    self->driver_memory = desc->driver_memory;
    engine->blocks.freed_map = &self->freed.pieces;
    return rmm__freed_init(&self->freed, RMM_FREED_COUNT);
}

static void fini(void *state)
{
    state_t *self = state;

    rmm__freed_fini(&self->freed);
}

static bool check(void *state)
{
    state_t *self = state;

    return rmm__freed_check(&self->freed);
}

/* --- blocks ------------------------------------------------------------------------ */

static void show_dropped(state_t *self)
{
    RMM_ROW_SET(self->engine->header, freed_dropped, self->freed.dropped);
}

static void gone(void *state, uint64_t start, uint64_t end)
{
    state_t *self = state;

    rmm__freed_take(&self->freed, start, end);
    show_dropped(self);
}

static void allocated(void *state, rmm_diag_call_t *call)
{
    gone(state, call->block->address, rmm__diag_padded_end(call->block));
}

static bool is_remembered(const state_t *self, const rmm_block_note_t *note)
{
    bool is_kept = (note->flags & RMM_DIAG_BLOCK_KEPT) != 0;
    bool is_returned = (note->flags & RMM_DIAG_BLOCK_RETURNED) != 0;

    return is_kept || (is_returned && self->driver_memory != RMM_DRIVER_MEMORY_UNSEEN);
}

static void freed(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;

    if ((call->modes & RMM_DIAG_MODE_BOUNDS) != 0 && call->is_plain &&
        is_remembered(self, &call->engine->blocks.notes[call->index])) {
        rmm__freed_add(&self->freed, &call->freed);
        show_dropped(self);
    }
}

void rmm__diag_engine_driver_unseen(rmm_diag_engine_t *engine, bool from_now_on)
{
    state_t *self = rmm__checker_state(engine, &rmm__freed_checker);

    rmm__mutex_lock(&engine->lock);
    rmm__freed_drop_returned(&self->freed);
    if (from_now_on) {
        self->driver_memory = RMM_DRIVER_MEMORY_UNSEEN;
    }
    rmm__mutex_unlock(&engine->lock);
}

const rmm_freed_block_t *
rmm__freed_begins_at(rmm_diag_engine_t *engine, uint64_t address)
{
    state_t *self = rmm__checker_state(engine, &rmm__freed_checker);
    const rmm_freed_block_t *freed = rmm__freed_find(&self->freed, address);

    RMM_ASSERT_LOCKED(&engine->lock);
    return freed != NULL && freed->block.address == address ? freed : NULL;
}

/* By a call that the kernel refuses, but only behind its look at the memory. */
static bool host_can_read(uint64_t address)
{
    const int refused = ~0;
    int before = errno;
    uint64_t aligned = address & ~UINT64_C(7); /* all 8 bytes are in one page */
    bool can =
        syscall(SYS_rt_sigprocmask, refused, aligned, NULL, 8) == 0 || errno != EFAULT;

    errno = before;
    return can;
}

static bool
is_of_host(const state_t *self, const rmm_freed_block_t *freed, uint64_t address)
{
    bool is_apart =
        self->driver_memory == RMM_DRIVER_MEMORY_APART && freed->block.device >= 0;

    return freed->is_returned && !is_apart && host_can_read(address);
}

/* The freed block that this address is in; NULL: none is known. */
static const rmm_freed_block_t *find_freed(state_t *self, uint64_t address)
{
    const rmm_freed_block_t *freed = rmm__freed_find(&self->freed, address);

    if (freed != NULL && is_of_host(self, freed, address)) {
        rmm__freed_take(
            &self->freed, freed->block.address,
            freed->block.address + freed->block.bytes);
        return NULL;
    }
    return freed;
}

/* --- uses -------------------------------------------------------------------------- */

static void add_finding(
    const rmm_diag_call_t *call, const rmm_freed_block_t *freed, rmm_finding_t finding)
{
    rmm_diag_engine_t *engine = call->engine;

    finding.kind = RMM_DIAG_USE_AFTER_FREE;
    finding.call = call->event->kind;
    finding.block = freed->block;
    finding.stream_id = rmm__stream_names_find(&engine->streams, call->event->stream);
    finding.other_user = RMM_DIAG_NO_USER;
    finding.other_stream_id = freed->freed_stream_id;
    finding.origin = freed->origin;
    finding.freed = freed->freed;
    rmm__findings_add(&engine->findings, &finding);
}

static void before(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;
    const rmm_event_range_t *range = &call->range;
    const rmm_freed_block_t *freed = NULL;

    if ((call->modes & RMM_DIAG_MODE_BOUNDS) == 0 || range->bytes == 0 ||
        !rmm__freed_may_have(&self->freed, range->start) ||
        rmm__live_map_find(&call->engine->blocks.map, range->start) != RMM_LIVE_NONE) {
        return;
    }
    freed = find_freed(self, range->start);
    if (freed != NULL) {
        call->is_explained = true;
        add_finding(
            call, freed,
            (rmm_finding_t){
                .access = range->is_write ? RMM_DIAG_WRITES : RMM_DIAG_READS,
                .address = range->start,
                .bytes = range->bytes,
                .function = call->event->name,
                .user = RMM_DIAG_NO_USER,
                .confidence = freed->is_returned ? RMM_DIAG_LIKELY : RMM_DIAG_CERTAIN});
    }
}

/* The freed block that a kernel is given a pointer into; NULL: the word is no error. */
static const rmm_freed_block_t *find_stale(state_t *self, uint64_t word)
{
    const rmm_freed_block_t *freed = find_freed(self, word);

    if (freed == NULL || rmm__event_may_be_number(word, freed->block.address) ||
        rmm__live_map_find(&self->engine->blocks.map, word - 1) != RMM_LIVE_NONE) {
        return NULL;
    }
    return freed;
}

/* NULL: the word is no error, or points into the same block as an earlier word. */
static const rmm_freed_block_t *stale_block(state_t *self, uint32_t word)
{
    const uint64_t *unowned = self->engine->blocks.unowned;
    const rmm_freed_block_t *freed = find_stale(self, unowned[word]);

    for (uint32_t i = 0; i < word && freed != NULL; i++) {
        const rmm_freed_block_t *earlier = find_stale(self, unowned[i]);

        if (earlier != NULL && earlier->block.address == freed->block.address) {
            freed = NULL;
        }
    }
    return freed;
}

/* A kernel that was not counted gets its name here. */
static uint32_t user_of(const rmm_diag_call_t *call)
{
    return call->user != RMM_DIAG_NO_USER
               ? call->user
               : rmm__users_name(&call->engine->users, call->event);
}

static void after(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;
    const rmm_live_blocks_t *blocks = &call->engine->blocks;

    if (call->event->kind != RMM_DIAG_LAUNCH ||
        (call->modes & RMM_DIAG_MODE_BOUNDS) == 0) {
        return;
    }
    for (uint32_t i = 0; i < blocks->unowned_count; i++) {
        const rmm_freed_block_t *freed = stale_block(self, i);

        if (freed != NULL) {
            add_finding(
                call, freed,
                (rmm_finding_t){
                    .access = RMM_DIAG_USES,
                    .address = blocks->unowned[i],
                    .user = user_of(call),
                    .confidence = RMM_DIAG_LIKELY});
        }
    }
}

const rmm_checker_t rmm__freed_checker = {
    .state_bytes = sizeof(state_t),
    .init = init,
    .fini = fini,
    .allocated = allocated,
    .freed = freed,
    .gone = gone,
    .before = before,
    .after = after,
    .check = check};
