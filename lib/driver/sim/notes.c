/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers where managed memory was prefetched to and where it should be: lists of notes, of
 * ranges that do not overlap. A new one cuts what it covers out of the older.
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
    int device = SIM_NOWHERE;

    for (; notes != NULL; notes = notes->next) {
        uintptr_t from = notes->begin > begin ? notes->begin : begin;
        uintptr_t to = notes->end < end ? notes->end : end;

        if (from >= to) {
            continue;
        }
        if (covered != 0 && notes->device != device) {
            return SIM_NOWHERE;
        }
        device = notes->device;
        covered += to - from;
    }
    return covered == bytes ? device : SIM_NOWHERE;
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

int rmm__sim_note_prefetched_locked(const void *ptr, size_t bytes, int device)
{
    return notes_put(&prefetched, ptr, bytes, device);
}

int rmm__sim_note_preferred_locked(const void *ptr, size_t bytes, int device)
{
    return notes_put(&preferred, ptr, bytes, device);
}
