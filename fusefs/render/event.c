/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of /rmm/events_pipe: one JSON object. Every line has all keys of the first part, null if
 * they do not apply; keys are only ever added.
 */
#include <stdio.h>
#include <time.h>

#include "render/parts.h"

static const char *const type_names[EVENT_TYPE_COUNT] = {
#define X(id, name) [EVENT_##id] = name,
    EVENT_TYPE_MAP(X)
#undef X
};

void render_time(text_t *text, uint64_t time_ns)
{
    time_t seconds = (time_t)(time_ns / 1000000000u);
    struct tm utc = {0};
    char date[32];
    (void)gmtime_r(&seconds, &utc);
    (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
    text_printf(text, "%s.%09uZ", date, (unsigned)(time_ns % 1000000000u));
}

void render_node_event(const node_event_t *event, text_t *text)
{
    char device[16] = "";
    if (event->device != EVENT_NO_DEVICE) {
        tree_device_name(event->device, device);
    }
    text_puts(text, "{\"time\": \"");
    render_time(text, event->time_ns);
    text_puts(text, "\"");
    put_text_key(text, "type", type_names[event->type]);
    put_number_key(text, "pid", event->pid > 0, (uint64_t)event->pid);
    put_number_key(text, "uid", event->uid != EVENT_NO_UID, event->uid);
    put_text_key(text, "gpu", device);
    put_text_key(text, "resource", event->resource);
    put_number_key(
        text, "bytes",
        event->bytes != EVENT_NO_FIGURE && event->bytes != FIGURE_UNKNOWN,
        event->bytes);
    put_number_key(text, "count", event->count != EVENT_NO_FIGURE, event->count);
    put_text_key(text, "process", event->process);
    put_text_key(text, "text", event->text);
    text_puts(text, "}\n");
}
