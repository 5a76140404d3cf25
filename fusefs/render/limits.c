/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `limits`: the limits of groups that are in force, and what their programs hold. With hidepid a
 * reader sees those of his own groups, and of GPUs.
 */
#include <stdio.h>

#include "control/limit_lines.h"
#include "render/parts.h"
#include "render/printers.h"

bool is_limit_shown(
    const snapshot_t *snapshot, const limit_t *limit, const text_t *text)
{
    return limit->kind == LIMIT_OF_DEVICE ||
           is_shown_to(&snapshot->hiding, limit->uid, text);
}

void put_limited_device(const limit_t *limit, char device[16])
{
    (void)snprintf(device, 16, "all");
    if (limit->device != LIMIT_EACH_GPU) {
        tree_device_name(limit->device, device);
    }
}

bool limit_has_user(const limit_t *limit)
{
    return limit->kind != LIMIT_OF_DEVICE && limit->uid != LIMIT_ANY_USER;
}

static void put_limit(text_t *text, const snapshot_limit_t *shown)
{
    const limit_t *limit = &shown->limit;
    char device[16];
    put_limited_device(limit, device);
    text_printf(text, "%s ", limit_kind_name(limit->kind));
    text_put_foreign(text, limit->kind == LIMIT_OF_DEVICE ? "-" : limit->name);
    if (limit_has_user(limit)) {
        text_printf(text, " %u %s ", (unsigned)limit->uid, device);
    } else {
        text_printf(text, " - %s ", device);
    }
    render_column(text, limit->limit_bytes);
    render_column(text, shown->held_bytes);
    render_column(text, shown->given_bytes);
    render_column(text, shown->processes);
    text_printf(text, "%u\n", (unsigned)limit->set_by);
}

void print_limits(const subject_t *subject, text_t *text)
{
    const snapshot_t *snapshot = subject->snapshot;
    text_puts(
        text, "#kind name uid gpu limit_bytes held_bytes given_bytes processes "
              "set_by\n");
    for (uint32_t i = 0; i < snapshot->limit_count; i++) {
        if (is_limit_shown(snapshot, &snapshot->limits[i].limit, text)) {
            put_limit(text, &snapshot->limits[i]);
        }
    }
}

void print_device_limit_bytes(const subject_t *subject, text_t *text)
{
    uint64_t limit = limit_of_device(subject->model, subject->node.id);
    if (limit == UINT64_MAX) {
        text_puts(text, "max\n");
    } else {
        render_value(text, limit);
    }
}
