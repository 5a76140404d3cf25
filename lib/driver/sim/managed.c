/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory: device memory, which the host reads and writes here anyway, with a note
 * of the preferred location that a program set. Nothing moves, and a note is taken at the call, not
 * in stream order, as CUDA's range attributes are.
 *
 * A list of notes is of ranges that do not overlap: a new one cuts what it covers out of
 * the older.
 *
 * Locking: all under rmm__sim_lock.
 */
#include "driver/sim/internal.h"

#include <stdlib.h>

typedef struct sim_note {
    struct sim_note *next;
    uintptr_t begin, end;
    int device;
} sim_note_t;

static sim_note_t *prefetched;
static sim_note_t *preferred;

int rmm__sim_managed_alloc(void **ptr_out, size_t bytes)
{
    if (rmm__sim_attribute(RMM_ATTRIBUTE_MANAGED_MEMORY) == 0 ||
        rmm__sim_attribute(SIM_MANAGED_ALLOC) == 0) {
        return RMM_DRIVER_NOT_SUPPORTED;
    }
    return bytes != 0 /* unlike cudaMalloc */
               ? rmm__sim_memory_take("managed_alloc", ptr_out, bytes, SIM_USE_MANAGED)
               : RMM_DRIVER_INVALID_VALUE;
}

/* ---- notes ---- */

static bool notes_add(sim_note_t **notes, uintptr_t begin, uintptr_t end, int device)
{
    sim_note_t *note = malloc(sizeof(*note));

    if (note != NULL) {
        *note =
            (sim_note_t){.next = *notes, .begin = begin, .end = end, .device = device};
        *notes = note;
    }
    return note != NULL;
}

/* False without host memory for the two parts of a note cut in the middle; then nothing
 * has changed but that some are shorter. */
static bool notes_cut(sim_note_t **notes, uintptr_t begin, uintptr_t end)
{
    for (sim_note_t **link = notes; *link != NULL;) {
        sim_note_t *note = *link;

        if (note->begin < begin && note->end > end) {
            if (!notes_add(&note->next, end, note->end, note->device)) {
                return false;
            }
            note->end = begin;
            return true; /* it covered all of the range: no other does */
        }
        if (note->begin >= begin && note->end <= end) {
            *link = note->next;
            free(note);
            continue;
        }
        if (note->begin < begin && note->end > begin) {
            note->end = begin;
        } else if (note->begin >= begin && note->begin < end) {
            note->begin = end;
        }
        link = &note->next;
    }
    return true;
}

static int notes_put(sim_note_t **notes, const void *ptr, size_t bytes, int device)
{
    uintptr_t begin = (uintptr_t)ptr;

    return notes_cut(notes, begin, begin + bytes) &&
                   notes_add(notes, begin, begin + bytes, device)
               ? RMM_DRIVER_OK
               : RMM_DRIVER_MEMORY_ALLOCATION;
}

/* The device that all of the range is noted for. */
static int notes_find(const sim_note_t *notes, const void *ptr, size_t bytes)
{
    uintptr_t begin = (uintptr_t)ptr;
    uintptr_t end = begin + bytes;
    size_t covered = 0;
    int device = RMM_SIM_NOWHERE;

    for (; notes != NULL; notes = notes->next) {
        uintptr_t from = notes->begin > begin ? notes->begin : begin;
        uintptr_t to = notes->end < end ? notes->end : end;

        if (from >= to) {
            continue;
        }
        if (covered != 0 && notes->device != device) {
            return RMM_SIM_NOWHERE;
        }
        device = notes->device;
        covered += to - from;
    }
    return covered == bytes ? device : RMM_SIM_NOWHERE;
}

void rmm__sim_managed_forget_locked(const void *ptr, uint64_t bytes)
{
    uintptr_t begin = (uintptr_t)ptr;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    /* without host memory a note of more than this stays: nothing worse */
    (void)notes_cut(&prefetched, begin, begin + bytes);
    (void)notes_cut(&preferred, begin, begin + bytes);
}

int rmm__sim_prefetched_to_locked(const void *ptr, size_t bytes)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    return notes_find(prefetched, ptr, bytes);
}

int rmm__sim_preferred_at_locked(const void *ptr, size_t bytes)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    return notes_find(preferred, ptr, bytes);
}

/* ---- the calls ---- */

/* True for managed memory that lies in one allocation or in one segment of a pool, and for host
 * memory where a device can read that. */
static bool can_move_locked(const void *ptr, size_t bytes)
{
    sim_block_t block;

    if (rmm__sim_memory_find_locked(ptr, &block)) {
        return (block.use == SIM_USE_MANAGED || block.use == SIM_USE_MANAGED_POOL) &&
               bytes <= block.bytes - (size_t)((const char *)ptr - block.begin);
    }
    return !rmm__sim_memory_is_device_locked(ptr) &&
           !rmm__sim_virtual_holds_locked(ptr) &&
           rmm__sim_attribute(RMM_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0;
}

static int check_locked(const void *ptr, size_t bytes, int device)
{
    if (device != RMM_DRIVER_HOST &&
        (device < 0 || device >= rmm__sim_device_count() ||
         rmm__sim_attribute(RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0)) {
        return RMM_DRIVER_INVALID_DEVICE;
    }
    return ptr != NULL && bytes != 0 && can_move_locked(ptr, bytes)
               ? RMM_DRIVER_OK
               : RMM_DRIVER_INVALID_VALUE;
}

int rmm__sim_mem_prefer(void *ptr, size_t bytes, int device)
{
    int error = rmm__sim_enter("mem_prefer");

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = check_locked(ptr, bytes, device);
    if (error == RMM_DRIVER_OK) {
        error = notes_put(&preferred, ptr, bytes, device);
    }
    rmm__sim_leave();
    return error;
}

/* A graph cannot hold one: it ruins the capture of its stream. */
int rmm__sim_mem_prefetch(
    const void *ptr, size_t bytes, int device, rmm_stream_t handle)
{
    uint64_t word = (uint64_t)(uintptr_t)ptr;
    sim_observation_t observation = {
        .kind = RMM_DIAG_PREFETCH,
        .name = "mem_prefetch",
        .stream = handle,
        .words = &word,
        .word_count = 1,
        .bytes = bytes};
    sim_stream_t *stream;
    int error;

    rmm__sim_tell_before(&observation);
    stream = rmm__sim_enter_stream(handle, "mem_prefetch", &error);
    if (stream == NULL) {
        return error;
    }
    error = rmm__sim_capture_check_wait_locked(stream);
    if (error == RMM_DRIVER_OK) {
        error = check_locked(ptr, bytes, device);
    }
    if (error == RMM_DRIVER_OK) {
        error = notes_put(&prefetched, ptr, bytes, device);
    }
    observation.device = stream->device;
    rmm__sim_leave();
    if (error == RMM_DRIVER_OK) {
        rmm__sim_tell(&observation);
    }
    return error;
}
