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

/* What an action of PyTorch's is here. */
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
        snprintf(problem, LOG_PROBLEM_MAX, "%s is no number from 0 on", key);
        return false;
    }
    *out = (uint64_t)json_integer_value(value);
    return true;
}

/* PyTorch 2.0 tells no time: all its operations are at once. */
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
    row->thread = 1; /* not told */
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

static snapshot_result_t say(char problem[LOG_PROBLEM_MAX], const char *text)
{
    snprintf(problem, LOG_PROBLEM_MAX, "%s", text);
    return SNAPSHOT_FAILED;
}

/* The only trace with entries; NULL with the problem. */
static const json_t *choose_trace(const json_t *traces, char problem[LOG_PROBLEM_MAX])
{
    const json_t *chosen = NULL;
    for (size_t i = 0; i < json_array_size(traces); i++) {
        const json_t *trace = json_array_get(traces, i);
        if (json_array_size(trace) == 0) {
            continue;
        }
        if (chosen != NULL) {
            (void)say(
                problem, "the snapshot has traces of several GPUs: keep one of its "
                         "device_traces");
            return NULL;
        }
        chosen = trace;
    }
    if (chosen == NULL) {
        (void)say(
            problem, "the snapshot has no trace: torch.cuda.memory."
                     "_record_memory_history() comes before what is to be recorded");
    }
    return chosen;
}

static snapshot_result_t
take_all(const json_t *json, const log_sink_t *sink, char problem[LOG_PROBLEM_MAX])
{
    const json_t *traces = json_object_get(json, "device_traces");
    if (json_object_get(json, "type") != NULL && json_object_get(json, "pid") != NULL) {
        return say(
            problem, "events of a node tell no allocations: replay "
                     "proc/<pid>/events_pipe of a traced process");
    }
    if (!json_is_array(traces)) {
        return say(
            problem, "JSON, but no memory snapshot of PyTorch: no device_traces");
    }
    const json_t *trace = choose_trace(traces, problem);
    if (trace == NULL) {
        return SNAPSHOT_FAILED;
    }
    for (size_t i = 0; i < json_array_size(trace); i++) {
        if (!take_entry(json_array_get(trace, i), i + 1, sink)) {
            return SNAPSHOT_STOPPED;
        }
    }
    return SNAPSHOT_OK;
}

/* What jansson says may quote the file. */
static snapshot_result_t
say_damaged(const json_error_t *error, char problem[LOG_PROBLEM_MAX])
{
    snprintf(
        problem, LOG_PROBLEM_MAX, "damaged JSON: line %d, column %d: %.80s",
        error->line, error->column, error->text);
    for (char *c = problem; *c != '\0'; c++) {
        *c = (char)(*c >= ' ' && *c <= '~' ? *c : '?');
    }
    return SNAPSHOT_FAILED;
}

/* The lines of /rmm/events_pipe are an object each: the first tells what they are. */
snapshot_result_t snapshot_read(
    const char *text, size_t length, const log_sink_t *sink,
    char problem[LOG_PROBLEM_MAX])
{
    json_error_t error;
    json_t *json = json_loadb(text, length, JSON_DISABLE_EOF_CHECK, &error);
    if (json == NULL) {
        return say_damaged(&error, problem);
    }
    snapshot_result_t result = take_all(json, sink, problem);
    json_decref(json);
    return result;
}
