/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of figures, sorted by what they are of; see figure_history.h. */
#include "top/figure_history.h"

#include <stdlib.h>
#include <string.h>

#include "segment/list.h"

void history_init(history_t *history)
{
    memset(history, 0, sizeof(*history));
}

void history_fini(history_t *history)
{
    for (uint32_t i = 0; i < history->count; i++) {
        free(history->rings[i]);
    }
    free(history->rings);
    history_init(history);
}

/* --- the list ----------------------------------------------------------------------------- */

static int compare(const history_ring_t *ring, uint64_t id, uint32_t device)
{
    if (ring->id != id) {
        return ring->id < id ? -1 : 1;
    }
    return (ring->device > device) - (ring->device < device);
}

/* Where it is, or would be inserted. */
static bool
find(const history_t *history, uint64_t id, uint32_t device, uint32_t *index_out)
{
    uint32_t low = 0, high = history->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare(history->rings[middle], id, device) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *index_out = low;
    return low < history->count && compare(history->rings[low], id, device) == 0;
}

/* NULL: no memory. */
static history_ring_t *ring_of(history_t *history, uint64_t id, uint32_t device)
{
    uint32_t index;
    if (find(history, id, device, &index)) {
        return history->rings[index];
    }
    history_ring_t **rings = rmm__list_make_room(
        history->rings, history->count, &history->room, sizeof(*rings));
    if (rings == NULL) {
        return NULL;
    }
    history->rings = rings;
    history_ring_t *ring = calloc(1, sizeof(*ring));
    if (ring == NULL) {
        return NULL;
    }
    ring->id = id;
    ring->device = device;
    memmove(
        &history->rings[index + 1], &history->rings[index],
        (history->count - index) * sizeof(ring));
    history->rings[index] = ring;
    history->count++;
    return ring;
}

static void drop_unseen(history_t *history)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < history->count; i++) {
        history_ring_t *ring = history->rings[i];
        if (ring->is_seen) {
            history->rings[kept++] = ring;
        } else {
            free(ring);
        }
    }
    history->count = kept;
}

/* --- samples ------------------------------------------------------------------------------ */

/* The i-th newest. */
static const history_sample_t *newest(const history_ring_t *ring, uint32_t i)
{
    return &ring->samples[(ring->next + HISTORY_SAMPLES - 1 - i) % HISTORY_SAMPLES];
}

static bool
add(history_t *history, uint64_t id, uint32_t device, uint64_t time_ns,
    const figures_t *figures)
{
    history_ring_t *ring = ring_of(history, id, device);
    if (ring == NULL) {
        return false;
    }
    ring->is_seen = true;
    if (ring->count > 0 && newest(ring, 0)->time_ns == time_ns) {
        return true; /* of a node that has not answered again */
    }
    ring->samples[ring->next] =
        (history_sample_t){time_ns, figures->current_bytes, figures->total_count};
    ring->next = (ring->next + 1) % HISTORY_SAMPLES;
    ring->count += ring->count < HISTORY_SAMPLES;
    return true;
}

/* When the figures of a device or program came. */
static uint64_t time_of(const node_t *node, uint32_t site)
{
    return site < node->site_count ? node->sites[site].time_ns : node->time_ns;
}

bool history_add(history_t *history, const node_t *node)
{
    bool is_whole = true;
    if (node->layout != history->layout) {
        history_fini(history);
        history->layout = node->layout;
    }
    for (uint32_t i = 0; i < history->count; i++) {
        history->rings[i]->is_seen = false;
    }
    for (uint32_t i = 0; i < node->device_count; i++) {
        is_whole &=
            add(history, HISTORY_DEVICES, i, time_of(node, node->devices[i].site),
                &node->devices[i].figures);
    }
    for (uint32_t i = 0; i < node->use_count; i++) {
        const node_use_t *use = &node->uses[i];
        const node_process_t *process = &node->processes[use->process];
        is_whole &=
            add(history, process->id, use->device, time_of(node, process->site),
                &use->figures);
    }
    drop_unseen(history);
    return is_whole;
}

/* Between the i-th newest and the one before it. */
static bool rate_at(const history_ring_t *ring, uint32_t i, double *per_second)
{
    if (i + 1 >= ring->count) {
        return false;
    }
    const history_sample_t *now = newest(ring, i), *before = newest(ring, i + 1);
    if (now->total_count == FIGURE_UNKNOWN || before->total_count > now->total_count ||
        before->time_ns >= now->time_ns) {
        return false;
    }
    *per_second = (double)(now->total_count - before->total_count) /
                  ((double)(now->time_ns - before->time_ns) / 1e9);
    return true;
}

bool history_rate(
    const history_t *history, uint64_t id, uint32_t device, double *per_second)
{
    uint32_t index;
    return find(history, id, device, &index) &&
           rate_at(history->rings[index], 0, per_second);
}

/* How many moments of it fit into ROOM; 0 without a ring. */
static size_t find_moments(
    const history_t *history, uint64_t id, uint32_t device, size_t room,
    const history_ring_t **ring_out)
{
    uint32_t index;
    if (!find(history, id, device, &index)) {
        return 0;
    }
    *ring_out = history->rings[index];
    return (*ring_out)->count < room ? (*ring_out)->count : room;
}

size_t history_rates(
    const history_t *history, uint64_t id, uint32_t device, uint64_t *values,
    size_t room)
{
    const history_ring_t *ring = NULL;
    size_t count = find_moments(history, id, device, room, &ring);
    for (size_t i = 0; i < count; i++) {
        double rate;
        values[i] = rate_at(ring, (uint32_t)(count - 1 - i), &rate)
                        ? (uint64_t)(rate + 0.5)
                        : FIGURE_UNKNOWN;
    }
    return count;
}

size_t history_used(
    const history_t *history, uint64_t id, uint32_t device, uint64_t *values,
    size_t room)
{
    const history_ring_t *ring = NULL;
    size_t count = find_moments(history, id, device, room, &ring);
    for (size_t i = 0; i < count; i++) {
        values[i] = newest(ring, (uint32_t)(count - 1 - i))->current_bytes;
    }
    return count;
}
