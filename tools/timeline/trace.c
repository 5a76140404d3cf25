/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format is Google's "Trace Event Format". Times are microseconds since the history begins.
 * Track 0 is the process; a stream has the track of its index and one.
 */
#include "timeline/trace.h"

#include <inttypes.h>

#include "timeline/json_text.h"

typedef struct trace {
    const history_t *history;
    FILE *out;
    const char *separator;
} trace_t;

/* Write the fields that every event has; the object is left open. */
static void begin_event(
    trace_t *trace, char phase, const char *name, uint64_t when_ns, uint32_t tid)
{
    fprintf(trace->out, "%s\n{\"ph\":\"%c\",\"name\":", trace->separator, phase);
    json_text_put(trace->out, name);
    when_ns -= trace->history->begin_ns;
    fprintf(
        trace->out,
        ",\"ts\":%" PRIu64 ".%03" PRIu64 ",\"pid\":%" PRIu64 ",\"tid\":%" PRIu32,
        when_ns / 1000, when_ns % 1000, trace->history->pid, tid);
    trace->separator = ",";
}

/* --- names of tracks ------------------------------------------------------------------ */

static void name_track(trace_t *trace, const char *what, uint32_t tid, const char *name)
{
    begin_event(trace, 'M', what, trace->history->begin_ns, tid);
    fputs(",\"args\":{\"name\":", trace->out);
    json_text_put(trace->out, name);
    fputs("}}", trace->out);
}

static void name_tracks(trace_t *trace)
{
    const history_t *history = trace->history;
    name_track(trace, "process_name", 0, history->title);
    for (uint32_t i = 0; i < history->streams.count; i++) {
        name_track(trace, "thread_name", i + 1, history->streams.items[i]);
    }
}

/* --- blocks --------------------------------------------------------------------------- */

static const char *resource_of(const trace_t *trace, const history_block_t *block)
{
    return history_text(&trace->history->resources, block->resource, "blocks");
}

static void put_user(trace_t *trace, const char *key, uint32_t name)
{
    if (name < trace->history->names.count) {
        fprintf(trace->out, ",\"%s\":", key);
        json_text_put(trace->out, trace->history->names.items[name]);
    }
}

/* Slices of one name share a group of tracks: they have that of their resource. */
static void
begin_slice(trace_t *trace, char phase, const history_block_t *block, uint64_t when_ns)
{
    begin_event(trace, phase, resource_of(trace, block), when_ns, block->stream + 1);
    fprintf(
        trace->out, ",\"cat\":\"block\",\"id\":\"0x%zx\"",
        (size_t)(block - trace->history->blocks) + 1);
}

static void write_block(trace_t *trace, const history_block_t *block)
{
    char location[32];
    history_location_name(block->device, location);
    begin_slice(trace, 'b', block, block->begin_ns);
    fprintf(
        trace->out,
        ",\"args\":{\"address\":\"0x%" PRIx64 "\",\"bytes\":%" PRIu64
        ",\"location\":\"%s\"",
        block->address, block->bytes, location);
    put_user(trace, "first used by", block->first_user);
    put_user(trace, "last used by", block->last_user);
    fprintf(trace->out, "%s}}", block->is_left ? ",\"freed\":\"never\"" : "");
    begin_slice(trace, 'e', block, block->end_ns);
    fputs("}", trace->out);
}

/* --- calls ---------------------------------------------------------------------------- */

static void write_call(trace_t *trace, const history_call_t *call)
{
    const char *name = history_text(&trace->history->names, call->name, "unknown");
    begin_event(trace, 'i', name, call->when_ns, call->stream + 1);
    fputs(",\"s\":\"t\",\"cat\":\"call\"", trace->out);
    if (call->bytes > 0) {
        fprintf(trace->out, ",\"args\":{\"bytes\":%" PRIu64 "}", call->bytes);
    }
    fputs("}", trace->out);
}

/* --- counters ------------------------------------------------------------------------- */

/* Which blocks a counter counts. */
typedef struct counted {
    bool of_resource;
    int32_t device;
    uint32_t resource;
} counted_t;

static bool is_counted(const counted_t *counted, const history_block_t *block)
{
    return counted->of_resource ? block->resource == counted->resource
                                : block->device == counted->device;
}

static void
write_point(trace_t *trace, const char *name, uint64_t when_ns, uint64_t bytes)
{
    begin_event(trace, 'C', name, when_ns, 0);
    fprintf(trace->out, ",\"args\":{\"bytes\":%" PRIu64 "}}", bytes);
}

static size_t count_changes(const history_t *history, const counted_t *counted)
{
    size_t changes = 0;
    for (size_t i = 0; i < history->edge_count; i++) {
        changes += is_counted(counted, &history->blocks[history->edges[i].block]);
    }
    return changes;
}

static void write_counter(trace_t *trace, const char *what, const counted_t *counted)
{
    const history_t *history = trace->history;
    size_t changes = count_changes(history, counted);
    size_t stretch = (changes + TRACE_POINTS_MAX - 1) / TRACE_POINTS_MAX;
    size_t seen = 0;
    uint64_t bytes = 0, most = 0, when_ns = 0;
    char name[HISTORY_TEXT_BYTES];
    snprintf(name, sizeof(name), "live bytes, %s", what);
    for (size_t i = 0; i < history->edge_count; i++) {
        const history_edge_t *edge = &history->edges[i];
        const history_block_t *block = &history->blocks[edge->block];
        if (!is_counted(counted, block)) {
            continue;
        }
        bytes += edge->is_end != 0 ? (uint64_t)0 - block->bytes : block->bytes;
        if (seen % stretch == 0 || bytes >= most) {
            most = bytes;
            when_ns = edge->when_ns;
        }
        seen++;
        if (seen % stretch == 0 || seen == changes) {
            write_point(trace, name, when_ns, most);
        }
    }
    if (changes > 0) {
        write_point(trace, name, history->end_ns, bytes);
    }
}

static void write_counters(trace_t *trace)
{
    const history_t *history = trace->history;
    char name[32];
    for (uint32_t i = 0; i < history->location_count; i++) {
        history_location_name(history->locations[i].device, name);
        write_counter(
            trace, name, &(counted_t){.device = history->locations[i].device});
    }
    for (uint32_t i = 0; i < history->resources.count; i++) {
        write_counter(
            trace, history->resources.items[i],
            &(counted_t){.of_resource = true, .resource = i});
    }
}

static void mark_peaks(trace_t *trace)
{
    const history_t *history = trace->history;
    for (uint32_t i = 0; i < history->location_count; i++) {
        const history_location_t *location = &history->locations[i];
        char where[32], name[64];
        history_location_name(location->device, where);
        snprintf(name, sizeof(name), "peak of %s", where);
        begin_event(trace, 'i', name, location->peak_ns, 0);
        fprintf(
            trace->out,
            ",\"s\":\"p\",\"args\":{\"bytes\":%" PRIu64 ",\"blocks\":%" PRIu64 "}}",
            location->peak_bytes, location->peak_count);
    }
}

void trace_write(const history_t *history, FILE *out)
{
    trace_t trace = {.history = history, .out = out, .separator = ""};
    fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"note\":", out);
    json_text_put(out, history->note);
    fputs("},\"traceEvents\":[", out);
    name_tracks(&trace);
    write_counters(&trace);
    mark_peaks(&trace);
    for (size_t i = 0; i < history->block_count; i++) {
        write_block(&trace, &history->blocks[i]);
    }
    for (size_t i = 0; i < history->call_count; i++) {
        write_call(&trace, &history->calls[i]);
    }
    fputs("\n]}\n", out);
}
