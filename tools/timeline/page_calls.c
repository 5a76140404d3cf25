/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of the page; see page_calls.h. */
#include "timeline/page_calls.h"

#include <inttypes.h>
#include <stdlib.h>

/* Calls of one stream in one stretch of time: the first one, and how many. */
typedef struct tick {
    uint32_t first, count;
} tick_t;

static void put_call(
    const history_t *history, const history_call_t *call, uint32_t count,
    const char *separator, FILE *out)
{
    fprintf(
        out, "%s[%" PRIu64 ",%" PRIu32 ",%" PRId64 ",%" PRIu32 "]", separator,
        call->when_ns - history->begin_ns, call->stream,
        call->name < history->names.count ? (int64_t)call->name : -1, count);
}

/* False: no memory. */
static bool put_ticks(const history_t *history, FILE *out)
{
    size_t streams = history->streams.count + 1;
    size_t stretches = PAGE_CALLS_MAX / streams + 1;
    const char *separator = "";
    tick_t *ticks = calloc(streams * stretches, sizeof(*ticks));
    if (ticks == NULL) {
        return false;
    }
    for (size_t i = 0; i < history->call_count; i++) {
        const history_call_t *call = &history->calls[i];
        size_t stream = call->stream < streams ? call->stream : streams - 1;
        tick_t *tick =
            &ticks[stream * stretches + history_bin(history, call->when_ns, stretches)];
        tick->first = tick->count == 0 ? (uint32_t)i : tick->first;
        tick->count++;
    }
    for (size_t i = 0; i < streams * stretches; i++) {
        if (ticks[i].count > 0) {
            put_call(
                history, &history->calls[ticks[i].first], ticks[i].count, separator,
                out);
            separator = ",";
        }
    }
    free(ticks);
    return true;
}

bool page_put_calls(const history_t *history, FILE *out)
{
    bool good = true;
    fputs(",\n\"calls\":[", out);
    if (history->call_count > PAGE_CALLS_MAX) {
        good = put_ticks(history, out);
    } else {
        for (size_t i = 0; i < history->call_count; i++) {
            put_call(history, &history->calls[i], 1, i > 0 ? "," : "", out);
        }
    }
    fputs("]", out);
    return good;
}
