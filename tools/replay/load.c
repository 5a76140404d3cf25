/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row that is not replayed as written gets one line, up to PROBLEMS_SHOWN; a file
 * that is no log at all is given up early.
 */
#include "replay/load.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/error.h"
#include "replay/log_file.h"

#define PROBLEMS_SHOWN 1000
/* Lines without one row before the file is taken for something else. */
#define HOPELESS_LINES 20

typedef struct loading {
    const char *path;
    bool strict;
    bool no_memory;
    bool hopeless;
    uint64_t shown;
    plan_t *plan;
    load_counts_t *counts;
    /* Problems are held back until a first row shows that this is a log. */
    size_t held_count;
    uint64_t held_lines[HOPELESS_LINES];
    char held[HOPELESS_LINES][LOG_PROBLEM_MAX];
    bool saw_row;
} loading_t;

static void
show_problem(loading_t *loading, uint64_t line, const char *text, const char *remedy)
{
    if (loading->shown < PROBLEMS_SHOWN) {
        tool_error("%s:%" PRIu64 ": %s%s", loading->path, line, text, remedy);
    } else if (loading->shown == PROBLEMS_SHOWN) {
        tool_error("%s: further rows like these are only counted", loading->path);
    }
    loading->shown++;
}

static void show_held(loading_t *loading)
{
    for (size_t i = 0; i < loading->held_count; i++) {
        show_problem(
            loading, loading->held_lines[i], loading->held[i], "; row skipped");
    }
    loading->held_count = 0;
}

static bool on_problem(void *context, uint64_t line, const char *text)
{
    loading_t *loading = context;
    loading->counts->skipped_rows++;
    if (loading->strict) {
        show_problem(loading, line, text, "");
        return false;
    }
    if (loading->saw_row) {
        show_problem(loading, line, text, "; row skipped");
        return true;
    }
    loading->held_lines[loading->held_count] = line;
    snprintf(loading->held[loading->held_count++], LOG_PROBLEM_MAX, "%s", text);
    loading->hopeless = loading->held_count == HOPELESS_LINES;
    return !loading->hopeless;
}

static bool on_row(void *context, const log_row_t *row)
{
    loading_t *loading = context;
    char problem[LOG_PROBLEM_MAX];
    loading->saw_row = true;
    show_held(loading);
    switch (plan_add(loading->plan, row, problem)) {
    case PLAN_ADDED:
        return true;
    case PLAN_NOTED:
        loading->counts->corrected_rows++;
        show_problem(
            loading, row->line, problem,
            loading->strict ? "" : "; the allocation's size is used");
        return !loading->strict;
    case PLAN_REFUSED:
        return on_problem(loading, row->line, problem);
    case PLAN_NO_MEMORY:
        break;
    }
    loading->no_memory = true;
    return false;
}

static bool stopped(const loading_t *loading)
{
    if (loading->no_memory) {
        tool_error("%s: no host memory for the log", loading->path);
    } else if (loading->hopeless) {
        tool_error(
            "%s: not an allocation log: line %" PRIu64 ": %s", loading->path,
            loading->held_lines[0], loading->held[0]);
    }
    return false;
}

bool load_log(const char *path, bool strict, plan_t *plan, load_counts_t *counts)
{
    char error[LOG_FILE_ERROR_MAX];
    loading_t loading = {
        .path = path, .strict = strict, .plan = plan, .counts = counts};
    const log_sink_t sink = {&loading, on_row, on_problem};
    plan_init(plan);
    *counts = (load_counts_t){0};

    switch (log_file_read(path, &sink, error)) {
    case LOG_FILE_STOPPED:
        return stopped(&loading);
    case LOG_FILE_FAILED:
        tool_error("cannot read %s: %s", tool_shown(path), error);
        return false;
    case LOG_FILE_OK:
        break;
    }
    show_held(&loading);
    if (plan->op_count == 0) {
        tool_error("%s: the log has no operation", path);
        return false;
    }
    if (counts->skipped_rows > 1) { /* one was reported by its own line */
        tool_error("%s: %" PRIu64 " rows skipped", path, counts->skipped_rows);
    }
    return true;
}
