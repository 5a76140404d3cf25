/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy of the model that is saved, and its text; see state_copy.h.
 */
#include "state_copy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const state_mark_t state_marks[STATE_MARK_COUNT] = {
    {"peak_bytes", offsetof(device_t, peak_bytes)},
    {"peak_count", offsetof(device_t, peak_count)},
    {"peak_upper_bytes", offsetof(device_t, peak_upper_bytes)},
    {"lifetime_peak_bytes", offsetof(device_t, lifetime_peak_bytes)},
};

/* --- copying -------------------------------------------------------------------------- */

static uint64_t mark_value(const device_t *device, size_t offset)
{
    const void *mark = (const char *)device + offset;
    return atomic_load_explicit((const _Atomic(uint64_t) *)mark, memory_order_relaxed);
}

static void copy_device(device_copy_t *copy, const device_t *device)
{
    copy->is_listed = device->is_listed;
    copy->uid = device->uid;
    memcpy(copy->uuid, device->uuid, sizeof(copy->uuid));
    memcpy(copy->pci_bus_id, device->pci_bus_id, sizeof(copy->pci_bus_id));
    memcpy(copy->name, device->name, sizeof(copy->name));
    copy->capacity_bytes = device->capacity_bytes;
    for (size_t i = 0; i < STATE_MARK_COUNT; i++) {
        copy->marks[i] = mark_value(device, state_marks[i].offset);
    }
    memcpy(copy->exited, device->exited, sizeof(copy->exited));
    copy->extras = device->extras;
}

/* Of none: memory that can be freed, too. NULL: no memory. */
static void *copy_array(const void *items, uint32_t count, size_t bytes)
{
    void *copy = calloc((size_t)count + 1, bytes);
    if (copy != NULL && count > 0) {
        memcpy(copy, items, count * bytes);
    }
    return copy;
}

bool state_copy_take(state_copy_t *copy, const model_t *model)
{
    copy->device_count = model->gpu_count + 1;
    copy->folded_count = model->folded_count;
    copy->ended_count = model->ended.count;
    copy->devices = calloc(copy->device_count, sizeof(*copy->devices));
    copy->folded = copy_array(model->folded, copy->folded_count, sizeof(*copy->folded));
    copy->ended =
        copy_array(model->ended.items, copy->ended_count, sizeof(*copy->ended));
    if (copy->devices == NULL || copy->folded == NULL || copy->ended == NULL) {
        state_copy_free(copy);
        return false;
    }
    copy_device(&copy->devices[0], &model->host);
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        copy_device(&copy->devices[i + 1], &model->gpus[i]);
    }
    return true;
}

void state_copy_free(state_copy_t *copy)
{
    free(copy->devices);
    free(copy->folded);
    free(copy->ended);
}

/* --- text ----------------------------------------------------------------------------- */

static void write_gpu(text_t *text, const device_copy_t *gpu)
{
    if (gpu->uuid[0] == '\0') {
        return;
    }
    if (gpu->is_listed) {
        text_puts(text, "gpu ");
    } else {
        text_printf(text, "reported_gpu %u ", (unsigned)gpu->uid);
    }
    text_printf(
        text, "%s %s %" PRIu64 " %s\n", gpu->uuid,
        gpu->pci_bus_id[0] != '\0' ? gpu->pci_bus_id : "-", gpu->capacity_bytes,
        gpu->name);
}

static void write_figures(text_t *text, const device_copy_t *device)
{
    if (device->uuid[0] == '\0') {
        return;
    }
    for (size_t i = 0; i < STATE_MARK_COUNT; i++) {
        text_printf(
            text, "mark %s %s %" PRIu64 "\n", device->uuid, state_marks[i].name,
            device->marks[i]);
    }
    for (int i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        if (rmm__location_stats[i].kind == RMM_KIND_COUNTER) {
            text_printf(
                text, "exited %s %s %" PRIu64 "\n", device->uuid,
                rmm__location_stats[i].name, device->exited[i]);
        }
    }
    for (uint32_t i = 0; i < device->extras.count; i++) {
        text_printf(
            text, "exited %s %s %" PRIu64 "\n", device->uuid,
            device->extras.items[i].name, device->extras.items[i].value);
    }
}

void state_copy_write(const state_copy_t *copy, text_t *text)
{
    text_puts(text, "rmmfs-state 1\n");
    for (uint32_t i = 1; i < copy->device_count; i++) {
        write_gpu(text, &copy->devices[i]);
    }
    for (uint32_t i = 0; i < copy->device_count; i++) {
        write_figures(text, &copy->devices[i]);
    }
    for (uint32_t i = 0; i < copy->folded_count; i++) {
        text_printf(
            text, "folded %s %" PRIu64 " %s %u\n", copy->folded[i].name,
            copy->folded[i].exited_ns, copy->folded[i].process,
            (unsigned)copy->folded[i].uid);
    }
    for (uint32_t i = 0; i < copy->ended_count; i++) {
        const identity_t *ended = &copy->ended[i];
        text_printf(
            text, "ended %u %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
            (unsigned)ended->uid, ended->pid, ended->start_time_ticks, ended->made_ns);
    }
    text_puts(text, "end\n");
}
