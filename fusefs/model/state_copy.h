/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of the part of the model that state.c writes. The copy takes some 30 us under the model's
 * lock; the text and the file take milliseconds on a busy machine, and need no lock.
 *
 * Threads: the model's lock is held during state_copy_take(), shared is enough; a copy
 * belongs to one thread.
 */
#ifndef RMM_FUSEFS_STATE_COPY_H
#define RMM_FUSEFS_STATE_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "model/model.h"
#include "support/text.h"

/* Marks by name, for both directions. */
#define STATE_MARK_COUNT 4u
typedef struct state_mark {
    const char *name;
    size_t offset; /* in a device_t */
} state_mark_t;
extern const state_mark_t state_marks[STATE_MARK_COUNT];

typedef struct device_copy {
    gpu_t gpu;
    uid_t uid;
    uint64_t marks[STATE_MARK_COUNT];
    uint64_t exited[RMM_LOCATION_STAT_COUNT];
    newer_list_t newer;
} device_copy_t;

typedef struct state_copy {
    device_copy_t *devices; /* the host's first, then the GPUs' */
    uint32_t device_count;
    totalled_t *totalled;
    uint32_t totalled_count;
    identity_t *ended;
    uint32_t ended_count;
    limit_t *limits;
    uint32_t limit_count;
} state_copy_t;

/* False: no memory; there is nothing to free. */
bool state_copy_take(state_copy_t *copy, const model_t *model);
void state_copy_free(state_copy_t *copy);

/* As the file has it: state.h. */
void state_copy_write(const state_copy_t *copy, text_t *text);

#endif /* RMM_FUSEFS_STATE_COPY_H */
