/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy of the model that is saved, and its text; see state_copy.h.
 */
#include "model/state_copy.h"

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
    copy->gpu = device->gpu;
    copy->uid = device->uid;
    for (size_t i = 0; i < STATE_MARK_COUNT; i++) {
        copy->marks[i] = mark_value(device, state_marks[i].offset);
    }
    memcpy(copy->exited, device->exited, sizeof(copy->exited));
    copy->newer = device->newer;
}

/* A copy of an array, which may be empty. NULL: no memory. */
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
    copy->totalled_count = model->totalled_count;
    copy->ended_count = model->ended.count;
    copy->limit_count = model->limits.count;
    copy->devices = calloc(copy->device_count, sizeof(*copy->devices));
    copy->totalled =
        copy_array(model->totalled, copy->totalled_count, sizeof(*copy->totalled));
    copy->ended =
        copy_array(model->ended.items, copy->ended_count, sizeof(*copy->ended));
    copy->limits =
        copy_array(model->limits.items, copy->limit_count, sizeof(*copy->limits));
    if (copy->devices == NULL || copy->totalled == NULL || copy->ended == NULL ||
        copy->limits == NULL) {
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
    free(copy->totalled);
    free(copy->ended);
    free(copy->limits);
}

/* --- text ----------------------------------------------------------------------------- */

static void write_gpu(text_t *text, const device_copy_t *device)
{
    const gpu_t *gpu = &device->gpu;

    if (gpu->uuid[0] == '\0') {
        return;
    }
    if (gpu->is_listed) {
        text_puts(text, "gpu ");
    } else {
        text_printf(text, "reported_gpu %u ", (unsigned)device->uid);
    }
    text_printf(
        text, "%s %s %" PRIu64 " %s\n", gpu->uuid,
        gpu->pci_bus_id[0] != '\0' ? gpu->pci_bus_id : "-", gpu->capacity_bytes,
        gpu->name);
}

static void write_figures(text_t *text, const device_copy_t *device)
{
    if (device->gpu.uuid[0] == '\0') {
        return;
    }
    for (size_t i = 0; i < STATE_MARK_COUNT; i++) {
        text_printf(
            text, "mark %s %s %" PRIu64 "\n", device->gpu.uuid, state_marks[i].name,
            device->marks[i]);
    }
    for (int i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        if (rmm__location_stats[i].kind == RMM_KIND_COUNTER) {
            text_printf(
                text, "exited %s %s %" PRIu64 "\n", device->gpu.uuid,
                rmm__location_stats[i].name, device->exited[i]);
        }
    }
    for (uint32_t i = 0; i < device->newer.count; i++) {
        text_printf(
            text, "exited %s %s %" PRIu64 "\n", device->gpu.uuid,
            device->newer.items[i].name, device->newer.items[i].value);
    }
}

/* NULL: a GPU without a name, which nothing finds again. */
static const char *limited_device(const state_copy_t *copy, const limit_t *limit)
{
    if (limit->device == LIMIT_EACH_GPU || limit->device == DEVICE_HOST) {
        return limit->device == DEVICE_HOST ? "host" : "all";
    }
    const char *uuid = limit->device + 1 < copy->device_count
                           ? copy->devices[limit->device + 1].gpu.uuid
                           : "";
    return uuid[0] != '\0' ? uuid : NULL;
}

static void write_limits(text_t *text, const state_copy_t *copy)
{
    for (uint32_t i = 0; i < copy->limit_count; i++) {
        const limit_t *limit = &copy->limits[i];
        const char *device = limited_device(copy, limit);
        if (device != NULL) {
            text_printf(
                text, "limit %s %u %u %u %" PRIu64 " %s %s\n",
                limit_kind_name(limit->kind), (unsigned)limit->uid,
                (unsigned)limit->set_by, limit->had_programs ? 1u : 0u,
                limit->limit_bytes, device, limit->name[0] != '\0' ? limit->name : "-");
        }
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
    for (uint32_t i = 0; i < copy->totalled_count; i++) {
        text_printf(
            text, "folded %s %" PRIu64 " %s %u\n", copy->totalled[i].name,
            copy->totalled[i].exited_ns, copy->totalled[i].process,
            (unsigned)copy->totalled[i].uid);
    }
    for (uint32_t i = 0; i < copy->ended_count; i++) {
        const identity_t *ended = &copy->ended[i];
        text_printf(
            text, "ended %u %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
            (unsigned)ended->uid, ended->pid, ended->start_time_ticks, ended->made_ns);
    }
    write_limits(text, copy);
    text_puts(text, "end\n");
}
