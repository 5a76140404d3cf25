/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files are about the whole node, and what they all show; see render_node.h.
 */
#include "render_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "render.h"

const shown_stat_t shown_stats[] = {
#define X(field, kind, unit, help)                                                     \
    {FILE_##field, RMM_KIND_##kind,           RMM_UNIT_##unit, #field,                 \
     help,         offsetof(figures_t, field)},
    RMM_EACH_STAT(X)
#undef X
        {FILE_CURRENT_COUNT, RMM_KIND_GAUGE, RMM_UNIT_COUNT, "current_count",
         "Live allocations", offsetof(figures_t, current_count)},
    {FILE_CACHED_BYTES, RMM_KIND_GAUGE, RMM_UNIT_BYTES, "cached_bytes",
     "Bytes reserved, neither handed out nor lost to rounding",
     offsetof(figures_t, cached_bytes)},
    {FILE_PEAK_UPPER_BYTES, RMM_KIND_MARK, RMM_UNIT_BYTES, "peak_upper_bytes",
     "Upper bound of peak_bytes over several processes",
     offsetof(figures_t, peak_upper_bytes)},
};
const uint32_t shown_stat_count = sizeof(shown_stats) / sizeof(shown_stats[0]);
_Static_assert(
    sizeof(shown_stats) / sizeof(shown_stats[0]) <= SHOWN_STATS_MAX,
    "names of metrics");

void put_quoted(text_t *text, const char *string)
{
    char *begin = text_reserve(text, 2 * strlen(string) + 2); /* all of it escaped */
    char *to = begin;
    if (begin == NULL) {
        return;
    }
    *to++ = '"';
    for (; *string != '\0'; string++) {
        const char shown = text_shown(*string, '?');
        if (shown == '"' || shown == '\\') {
            *to++ = '\\';
        }
        *to++ = shown;
    }
    *to++ = '"';
    text->length += (size_t)(to - begin);
}

bool render_is_of_node(node_t node)
{
    switch (node.dir == DIR_ROOT ? node.file : FILE_NONE) {
    case FILE_METRICS:
    case FILE_RMM_PROM:
    case FILE_METRICS_OM:
    case FILE_JSON:
    case FILE_TOP:
    case FILE_PROCESSES:
    case FILE_USERS:
    case FILE_CGROUPS:
    case FILE_INDEX_HTML:
        return true;
    default:
        return false;
    }
}

static bool is_shown_to(const snapshot_t *snapshot, uid_t owner, const text_t *text)
{
    return hiding_shows(&snapshot->hiding, owner, text->uid, text->is_member);
}

static int render_shown(
    const snapshot_t *snapshot, const render_means_t *means, node_t node, text_t *text)
{
    switch (node.file) {
    case FILE_METRICS:
    case FILE_RMM_PROM:
        render_metrics(snapshot, means->budget, METRICS_PROMETHEUS, text);
        break;
    case FILE_METRICS_OM:
        render_metrics(snapshot, means->budget, METRICS_OPENMETRICS, text);
        break;
    case FILE_JSON:
        render_json(snapshot, text);
        break;
    case FILE_TOP:
        render_top(snapshot, text);
        break;
    case FILE_INDEX_HTML:
        render_page(snapshot, means, text);
        break;
    case FILE_PROCESSES:
        render_table(snapshot, NODE_PROCESSES, text);
        break;
    case FILE_USERS:
        render_table(snapshot, NODE_USERS, text);
        break;
    case FILE_CGROUPS:
        render_table(snapshot, NODE_CGROUPS, text);
        break;
    default:
        return -ENOENT;
    }
    return 0;
}

/* Only what the reader may see: the processes, and how much was left out of whose. */
static void
hide_processes(const snapshot_t *snapshot, const text_t *text, snapshot_t *shown)
{
    shown->process_count = 0;
    for (uint32_t i = 0; i < snapshot->process_count; i++) {
        if (is_shown_to(snapshot, snapshot->processes[i].uid, text)) {
            shown->processes[shown->process_count++] = snapshot->processes[i];
        }
    }
    for (uint32_t i = 0; i < SHARES_USERS_MAX; i++) {
        if (!is_shown_to(snapshot, shown->location_shares.users[i].uid, text)) {
            shown->location_shares.users[i].refused = 0;
        }
        if (!is_shown_to(snapshot, shown->resource_shares.users[i].uid, text)) {
            shown->resource_shares.users[i].refused = 0;
        }
        if (!is_shown_to(snapshot, shown->extra_stats.shares.users[i].uid, text)) {
            shown->extra_stats.shares.users[i].refused = 0;
        }
    }
}

/* A copy of the snapshot without what is hidden. */
static int render_some(
    const snapshot_t *snapshot, const render_means_t *means, node_t node, text_t *text)
{
    size_t bytes =
        sizeof(*snapshot) + snapshot->process_count * sizeof(snapshot->processes[0]);
    if (!text_take_scratch(text, bytes)) {
        return 0;
    }
    int error = -ENOMEM;
    snapshot_t *shown = malloc(bytes);
    if (shown != NULL) {
        /* Other threads change the references meanwhile. */
        memcpy(shown, snapshot, offsetof(snapshot_t, references));
        shown->processes = (snapshot_process_t *)(void *)(shown + 1);
        hide_processes(snapshot, text, shown);
        error = render_shown(shown, means, node, text);
    }
    free(shown);
    text_give_scratch(text, bytes);
    return error;
}

int render_snapshot(
    const snapshot_t *snapshot, const render_means_t *means, node_t node, text_t *text)
{
    text_clear(text);
    text->limit = TEXT_NODE_BYTES_MAX;
    int error = snapshot->hiding.level == HIDING_OFF
                    ? render_shown(snapshot, means, node, text)
                    : render_some(snapshot, means, node, text);
    text_trim(text);
    return error != 0 ? error : text_error(text);
}
