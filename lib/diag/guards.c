/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of guards; see guards.h. Results are looked at in the order of the checks, as far as
 * those before are done, and all pending ones where that stops: streams overtake each other.
 */
#include "diag/guards.h"

#include <stdlib.h>
#include <sys/mman.h>

#define TAG_BIT 0x80000000u
#define PAGE 4096u /* what a driver pins */

/* --- slots ------------------------------------------------------------------------------ */

static void give_slot(rmm_guards_t *guards, uint32_t slot)
{
    guards
        ->free_slots[(guards->first_free + guards->free_count++) % guards->slot_count] =
        slot;
}

static uint32_t take_slot(rmm_guards_t *guards)
{
    uint32_t slot = guards->free_slots[guards->first_free];

    guards->first_free = (guards->first_free + 1) % guards->slot_count;
    guards->free_count--;
    return slot;
}

/* --- guards ----------------------------------------------------------------------------- */

static rmm_guard_t guard_behind(const rmm_diag_block_v1_t *block)
{
    uint64_t begin = block->address + block->bytes;
    uint64_t bytes = block->end > begin ? block->end - begin : 0;

    return (rmm_guard_t){
        .address = begin,
        .bytes = bytes < RMM_GUARD_BYTES_MAX ? (uint32_t)bytes : RMM_GUARD_BYTES_MAX};
}

/* A slot has another guard long before its numbers come again. */
static uint32_t next_number(rmm_guards_t *guards)
{
    guards->last_number++;
    if (guards->last_number == 0) {
        guards->last_number = 1;
    }
    return guards->last_number;
}

static void begin_job(
    const rmm_guards_t *guards, rmm_guard_job_t *job, rmm_guard_action_t action,
    uint32_t tag)
{
    uint32_t check = tag % RMM_GUARD_CHECKS;

    job->states = (uint64_t)(uintptr_t)guards->states;
    job->results =
        (uint64_t)(uintptr_t)&guards->results[(size_t)check * RMM_GUARDS_AT_ONCE];
    job->action = action;
    job->tag = tag;
    job->count = 0;
    job->shared_bytes = (uint32_t)guards->shared_bytes;
}

bool rmm__guards_open(
    rmm_guards_t *guards, uint32_t index, const rmm_diag_block_v1_t *block,
    const rmm_stack_raw_t *stack, rmm_guard_job_t *job)
{
    rmm_guard_entry_t *entry = &guards->entries[index];
    rmm_guard_t guard = guard_behind(block);

    entry->guard.bytes = 0;
    if (guard.bytes == 0 || block->device < 0 || guards->free_count == 0) {
        return false;
    }
    guard.slot = take_slot(guards);
    guard.number = next_number(guards);
    entry->guard = guard;
    entry->device = block->device;
    entry->in_stream_order = (block->flags & RMM_DIAG_BLOCK_IN_STREAM_ORDER) != 0;
    entry->stream = entry->used_on = block->stream;
    entry->graphs = guards->graphs;
    entry->stack = *stack;
    /* release: pairs with is_open() in guards_run.c */
    atomic_store_explicit(
        &guards->states[guard.slot].open, guard.number, memory_order_release);
    begin_job(guards, job, RMM_GUARD_FILL, 1);
    job->guards[job->count++] = guard;
    return true;
}

/* The slot's next owner may already have it, where the guard is closed late. */
static void close_state(rmm_guards_t *guards, const rmm_guard_t *guard)
{
    _Atomic(uint32_t) *open = &guards->states[guard->slot].open;

    /* relaxed: only the host writes it, under the lock. release: as in rmm__guards_open() */
    if (atomic_load_explicit(open, memory_order_relaxed) == guard->number) {
        atomic_store_explicit(open, 0, memory_order_release);
    }
}

void rmm__guards_drop(rmm_guards_t *guards, uint32_t index)
{
    rmm_guard_entry_t *entry = &guards->entries[index];

    if (entry->guard.bytes != 0) {
        close_state(guards, &entry->guard);
        give_slot(guards, entry->guard.slot);
        entry->guard.bytes = 0;
    }
}

/* --- checks ----------------------------------------------------------------------------- */

static rmm_guard_check_t *check_at(const rmm_guards_t *guards, uint32_t number)
{
    return &guards->checks[number % RMM_GUARD_CHECKS];
}

static void note_queued(rmm_guards_t *guards, rmm_guard_check_t *check)
{
    guards->unqueued -= check->is_unqueued ? 1 : 0;
    check->is_unqueued = false;
}

/* Its suspects are filled in by the caller that begins it, its end makes it pending. */
bool rmm__guards_begin(
    rmm_guards_t *guards, uint32_t call, uint32_t user, rmm_stream_t stream)
{
    rmm_guard_check_t *check = check_at(guards, guards->next);

    if (guards->next - guards->oldest == RMM_GUARD_CHECKS) {
        return false;
    }
    note_queued(guards, check); /* the one before is done, and so was queued */
    check->tag = 0;
    check->count = 0;
    check->waiting = 0;
    check->call = call;
    check->user = user;
    check->stream = stream;
    check->stream_id = UINT64_MAX;
    return true;
}

void rmm__guards_name_stream(rmm_guards_t *guards, uint64_t stream_id)
{
    check_at(guards, guards->next)->stream_id = stream_id;
}

void rmm__guards_add(
    rmm_guards_t *guards, uint32_t index, const rmm_diag_block_v1_t *block,
    int32_t device)
{
    rmm_guard_check_t *check = check_at(guards, guards->next);
    rmm_guard_entry_t *entry = &guards->entries[index];
    rmm_guard_suspect_t *suspect = &check->suspects[check->count];

    /* another GPU may be unable to read this memory */
    if (entry->guard.bytes == 0 || entry->device != device ||
        check->count == RMM_GUARDS_AT_ONCE) {
        return;
    }
    for (uint32_t i = 0; i < check->count; i++) {
        if (check->suspects[i].guard.slot == entry->guard.slot) {
            return;
        }
    }
    suspect->guard = entry->guard;
    suspect->block = *block;
    suspect->stack = entry->stack;
    suspect->stream = entry->stream;
    suspect->had_graphs = entry->graphs != guards->graphs;
    entry->graphs = guards->graphs;
    check->count++;
}

/* Not 0, which results have at first, nor 1, the tag of fills; of the same place in the ring. */
static uint32_t tag_of(uint32_t number)
{
    return number | TAG_BIT;
}

bool rmm__guards_end(
    rmm_guards_t *guards, const rmm_stack_raw_t *stack, rmm_guard_job_t *job)
{
    rmm_guard_check_t *check = check_at(guards, guards->next);

    if (check->count == 0) {
        return false;
    }
    check->stack = *stack;
    check->tag = tag_of(guards->next);
    check->is_unqueued = true;
    guards->unqueued++;
    check->waiting = (1u << check->count) - 1;
    begin_job(guards, job, RMM_GUARD_CHECK, check->tag);
    for (uint32_t i = 0; i < check->count; i++) {
        job->guards[job->count++] = check->suspects[i].guard;
    }
    guards->next++;
    return true;
}

void rmm__guards_queued(rmm_guards_t *guards, uint32_t tag)
{
    rmm_guard_check_t *check = check_at(guards, tag);

    if (tag == check->tag) { /* else its place is another check's by now */
        note_queued(guards, check);
    }
}

void rmm__guards_cancel(rmm_guards_t *guards, uint32_t tag)
{
    rmm_guard_check_t *check = check_at(guards, tag);

    if (check->tag == tag) {
        check->waiting = 0;
        note_queued(guards, check);
    }
}

/* Such a check would run behind all that is queued now. */
static bool is_to_be_queued(const rmm_guards_t *guards, const rmm_guard_t *guard)
{
    for (uint32_t number = guards->oldest;
         guards->unqueued > 0 && number != guards->next; number++) {
        const rmm_guard_check_t *check = check_at(guards, number);

        for (uint32_t i = 0; check->is_unqueued && i < check->count; i++) {
            if (check->suspects[i].guard.number == guard->number) {
                return true;
            }
        }
    }
    return false;
}

/* Its free waits for all that is queued, so that may still look at the guard. */
static void leave_open(rmm_guards_t *guards, rmm_guard_entry_t *entry)
{
    const rmm_guard_t *guard = &entry->guard;

    if (is_to_be_queued(guards, guard)) {
        close_state(guards, guard);
    }
    give_slot(guards, guard->slot);
    entry->guard.bytes = 0;
}

void rmm__guards_release(rmm_guards_t *guards, uint32_t index)
{
    rmm_guard_entry_t *entry = &guards->entries[index];

    give_slot(guards, entry->guard.slot);
    entry->guard.bytes = 0;
}

bool rmm__guards_close(
    rmm_guards_t *guards, uint32_t index, const rmm_diag_block_v1_t *freed,
    const rmm_diag_block_v1_t *block, const rmm_stack_raw_t *stack,
    rmm_guard_job_t *job)
{
    rmm_guard_entry_t *entry = &guards->entries[index];
    bool is_queued = false;

    if (entry->guard.bytes == 0) {
        return false;
    }
    if (!entry->in_stream_order && (freed->flags & RMM_DIAG_BLOCK_SYNC) == 0) {
        leave_open(guards, entry);
        return false;
    }
    if ((freed->flags & RMM_DIAG_BLOCK_IN_STREAM_ORDER) != 0 &&
        (freed->flags & RMM_DIAG_BLOCK_SYNC) == 0 &&
        rmm__guards_begin(guards, 0, RMM_DIAG_NO_USER, freed->stream)) {
        rmm__guards_name_stream(guards, freed->stream_id);
        rmm__guards_add(guards, index, block, entry->device);
        is_queued = rmm__guards_end(guards, stack, job);
    }
    if (!is_queued) {
        rmm__guards_drop(guards, index);
        return false;
    }
    job->action = RMM_GUARD_CLOSE;
    rmm__guards_release(guards, index);
    return true;
}

void rmm__guards_shut(rmm_guards_t *guards, const rmm_guard_job_t *job)
{
    rmm__guards_cancel(guards, job->tag);
    for (uint32_t i = 0; i < job->count; i++) {
        close_state(guards, &job->guards[i]);
    }
}

/* --- results ---------------------------------------------------------------------------- */

/* The first result of a check that is there, and says broken; others are done with. */
static bool
take_result(rmm_guards_t *guards, uint32_t number, rmm_guard_broken_t *broken)
{
    rmm_guard_check_t *check = check_at(guards, number);
    _Atomic(uint64_t) *results =
        &guards->results[(size_t)(number % RMM_GUARD_CHECKS) * RMM_GUARDS_AT_ONCE];

    for (uint32_t i = 0; i < check->count; i++) {
        uint32_t bit = 1u << i;
        uint64_t result = (check->waiting & bit) != 0
                              ? atomic_load_explicit(&results[i], memory_order_relaxed)
                              : 0;

        if (result >> 32 != check->tag || (check->waiting & bit) == 0) {
            continue;
        }
        check->waiting &= ~bit;
        if ((result & RMM_GUARD_BROKEN) != 0) {
            broken->check = check;
            broken->suspect = &check->suspects[i];
            broken->address =
                check->suspects[i].guard.address + (result & RMM_GUARD_OFFSET);
            return true;
        }
    }
    return false;
}

bool rmm__guards_take(rmm_guards_t *guards, rmm_guard_broken_t *broken)
{
    for (uint32_t number = guards->oldest; number != guards->next; number++) {
        if (take_result(guards, number, broken)) {
            return true;
        }
        if (number == guards->oldest && check_at(guards, number)->waiting == 0) {
            guards->oldest++;
        }
    }
    return false;
}

/* --- making ----------------------------------------------------------------------------- */

static size_t round_up(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static bool take_memory(rmm_guards_t *guards, uint32_t block_count)
{
    size_t states = round_up(guards->slot_count * sizeof(*guards->states));
    size_t results =
        round_up((size_t)RMM_GUARD_CHECKS * RMM_GUARDS_AT_ONCE * sizeof(uint64_t));

    guards->entries = calloc(block_count, sizeof(*guards->entries));
    guards->free_slots = calloc(guards->slot_count, sizeof(*guards->free_slots));
    guards->checks = calloc(RMM_GUARD_CHECKS, sizeof(*guards->checks));
    guards->shared_bytes = states + results;
    guards->shared = mmap(
        NULL, guards->shared_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
        -1, 0);
    if (guards->shared == MAP_FAILED) {
        guards->shared = NULL;
    }
    if (guards->entries == NULL || guards->free_slots == NULL ||
        guards->checks == NULL || guards->shared == NULL) {
        return false;
    }
    guards->states = guards->shared;
    guards->results = (void *)((char *)guards->shared + states);
    return true;
}

bool rmm__guards_init(rmm_guards_t *guards, uint32_t block_count)
{
    *guards = (rmm_guards_t){.slot_count = block_count * 2};
    if (!take_memory(guards, block_count)) {
        rmm__guards_fini(guards);
        return false;
    }
    for (uint32_t slot = 0; slot < guards->slot_count; slot++) {
        give_slot(guards, slot);
    }
    guards->oldest = guards->next = 1;
    return true;
}

void rmm__guards_fini(rmm_guards_t *guards)
{
    free(guards->entries);
    free(guards->free_slots);
    free(guards->checks);
    if (guards->shared != NULL) {
        (void)munmap(guards->shared, guards->shared_bytes);
    }
    *guards = (rmm_guards_t){0};
}
