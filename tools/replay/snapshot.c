/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the traces of a snapshot; see snapshot.h. */
#include "replay/snapshot.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#define US_PER_DAY UINT64_C(86400000000)
#define NS_PER_US 1000u

bool snapshot_begins(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0') {
        at++;
    }
    return at < length && (text[at] == '{' || text[at] == '[');
}

/* --- an entry ----------------------------------------------------------------------------- */

/* The meaning of an action of PyTorch's for a replay. */
typedef enum meaning { MEANS_ROW, MEANS_NOTHING, MEANS_UNKNOWN } meaning_t;

static meaning_t parse_action(const json_t *entry, log_action_t *action_out)
{
    static const char *const ignored[] = {
        "free_completed", "segment_alloc", "segment_free", "segment_map",
        "segment_unmap",  "snapshot",      "user_defined"};
    static const struct {
        const char *name;
        log_action_t action;
    } rows[] = {
        {"alloc", LOG_ALLOCATE},
        {"free_requested", LOG_FREE},
        {"oom", LOG_ALLOCATE_FAILURE}};
    const char *name = json_string_value(json_object_get(entry, "action"));
    for (size_t i = 0; name != NULL && i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(name, rows[i].name) == 0) {
            *action_out = rows[i].action;
            return MEANS_ROW;
        }
    }
    for (size_t i = 0; name != NULL && i < sizeof ignored / sizeof *ignored; i++) {
        if (strcmp(name, ignored[i]) == 0) {
            return MEANS_NOTHING;
        }
    }
    return MEANS_UNKNOWN;
}

static bool get_number(
    const json_t *entry, const char *key, uint64_t *out, char problem[LOG_PROBLEM_MAX])
{
    const json_t *value = json_object_get(entry, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        snprintf(problem, LOG_PROBLEM_MAX, "%s is missing or not a number from 0", key);
        return false;
    }
    *out = (uint64_t)json_integer_value(value);
    return true;
}

/* PyTorch 2.0 records no time: all its operations are at once. */
static bool
get_time(const json_t *entry, uint64_t *time_ns, char problem[LOG_PROBLEM_MAX])
{
    uint64_t time_us = 0;
    bool is_good = json_object_get(entry, "time_us") == NULL ||
                   get_number(entry, "time_us", &time_us, problem);
    *time_ns = time_us % US_PER_DAY * NS_PER_US;
    return is_good;
}

static bool
parse_row(const json_t *entry, log_row_t *row, char problem[LOG_PROBLEM_MAX])
{
    row->thread = 1; /* not recorded */
    row->pointer = 0;
    return get_number(entry, "size", &row->bytes, problem) &&
           get_number(entry, "stream", &row->stream, problem) &&
           get_time(entry, &row->time_ns, problem) &&
           (row->action == LOG_ALLOCATE_FAILURE ||
            get_number(entry, "addr", &row->pointer, problem));
}

/* False: the sink stopped the reading. */
static bool take_entry(const json_t *entry, uint64_t number, const log_sink_t *sink)
{
    char problem[LOG_PROBLEM_MAX];
    log_row_t row = {.line = number};
    switch (parse_action(entry, &row.action)) {
    case MEANS_NOTHING:
        return true;
    case MEANS_UNKNOWN:
        return sink->problem(
            sink->context, number, "its action is not one of PyTorch's");
    case MEANS_ROW:
        break;
    }
    return parse_row(entry, &row, problem)
               ? sink->row(sink->context, &row)
               : sink->problem(sink->context, number, problem);
}

/* --- the whole ---------------------------------------------------------------------------- */

typedef struct snapshot {
    const log_sink_t *sink;
    uint64_t entries;       /* of the trace that is being read */
    unsigned traces;        /* with entries */
    bool has_traces;        /* it is a snapshot of PyTorch */
    bool has_type, has_pid; /* it is an event of a node */
    bool is_stopped;        /* by the sink */
} snapshot_t;

static bool drop_value(json_stream_t *stream, void *context)
{
    json_t *value = json_stream_value(stream);
    (void)context;
    json_decref(value);
    return value != NULL;
}

static bool read_entry(json_stream_t *stream, void *context)
{
    snapshot_t *snapshot = context;
    json_t *entry = json_stream_value(stream);
    if (entry == NULL) {
        return false;
    }
    if (snapshot->entries++ == 0) {
        snapshot->traces++;
    }
    bool goes_on = snapshot->traces == 1;
    if (goes_on && !take_entry(entry, snapshot->entries, snapshot->sink)) {
        snapshot->is_stopped = true;
        goes_on = false;
    }
    json_decref(entry);
    return goes_on;
}

static bool read_trace(json_stream_t *stream, void *context)
{
    snapshot_t *snapshot = context;
    snapshot->entries = 0;
    return json_stream_peek(stream) == '['
               ? json_stream_array(stream, read_entry, snapshot)
               : drop_value(stream, NULL);
}

/* The value of a key. Others than the traces are large, too: the list of segments. */
static bool read_member(json_stream_t *stream, const char *key, snapshot_t *snapshot)
{
    bool is_array = json_stream_peek(stream) == '[';
    bool is_traces = is_array && strcmp(key, "device_traces") == 0;
    snapshot->has_traces |= is_traces;
    snapshot->has_type |= strcmp(key, "type") == 0;
    snapshot->has_pid |= strcmp(key, "pid") == 0;
    return is_array ? json_stream_array(
                          stream, is_traces ? read_trace : drop_value, snapshot)
                    : drop_value(stream, NULL);
}

static bool read_key_and_member(json_stream_t *stream, snapshot_t *snapshot)
{
    if (json_stream_peek(stream) != '"') {
        return json_stream_take(stream, '"');
    }
    json_t *key = json_stream_value(stream);
    bool is_read = key != NULL && json_stream_take(stream, ':') &&
                   read_member(stream, json_string_value(key), snapshot);
    json_decref(key);
    return is_read;
}

static bool read_object(json_stream_t *stream, snapshot_t *snapshot)
{
    if (!json_stream_take(stream, '{')) {
        return false;
    }
    if (json_stream_peek(stream) == '}') {
        return json_stream_take(stream, '}');
    }
    while (read_key_and_member(stream, snapshot)) {
        if (json_stream_peek(stream) != ',') {
            return json_stream_take(stream, '}');
        }
        (void)json_stream_take(stream, ',');
    }
    return false;
}

/* Why it is no snapshot that can be replayed; NULL: it is one. */
static const char *fault_of(const json_stream_t *stream, const snapshot_t *snapshot)
{
    if (stream->problem[0] != '\0') {
        return stream->problem;
    }
    if (snapshot->traces > 1) {
        return "the snapshot has traces of several GPUs: keep one of its device_traces";
    }
    if (snapshot->has_type && snapshot->has_pid) {
        return "events of a node contain no allocations: replay "
               "proc/<pid>/events_pipe of a traced process";
    }
    if (!snapshot->has_traces) {
        return "JSON without device_traces: not a memory snapshot of PyTorch";
    }
    return snapshot->traces == 0 ? "the snapshot has no trace: "
                                   "torch.cuda.memory._record_memory_history() "
                                   "comes before what is to be recorded"
                                 : NULL;
}

/* The lines of /rmm/events_pipe are an object each: the first shows what they are. */
snapshot_result_t snapshot_read(
    json_stream_more_fn more, void *context, const log_sink_t *sink,
    char problem[LOG_PROBLEM_MAX])
{
    json_stream_t stream;
    snapshot_t snapshot = {.sink = sink};
    json_stream_init(&stream, more, context);
    if (json_stream_peek(&stream) == '[') {
        (void)json_stream_array(&stream, drop_value, NULL);
    } else {
        (void)read_object(&stream, &snapshot);
    }
    if (snapshot.is_stopped) {
        return SNAPSHOT_STOPPED;
    }
    const char *fault = fault_of(&stream, &snapshot);
    if (fault == NULL) {
        return SNAPSHOT_OK;
    }
    snprintf(problem, LOG_PROBLEM_MAX, "%s", fault);
    return SNAPSHOT_FAILED;
}
