/* SPDX-License-Identifier: Apache-2.0 */
/* How far a program is; see progress.h. */
#include "common/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"

#define COLUMNS 79 /* of any terminal, so that no line wraps */
#define BAR_COLUMNS 24

static unsigned percent(const progress_t *progress)
{
    return progress->total > 0 ? (unsigned)(100 * progress->done / progress->total)
                               : 100;
}

/* In one write, over what stood there. */
static void print_over(const char *line)
{
    fprintf(stderr, "\r%-*.*s\r", COLUMNS, COLUMNS, line);
}

void progress_begin(progress_t *progress, uint64_t total, bool quiet)
{
    *progress = (progress_t){
        .shown = !quiet, .is_terminal = isatty(STDERR_FILENO) == 1, .total = total};
}

void progress_group(const progress_t *progress, const char *group)
{
    if (progress->shown && !progress->is_terminal) {
        fprintf(
            stderr, "%s: %3u%% done, measuring %s\n", tool_name, percent(progress),
            group);
    }
}

void progress_step(progress_t *progress, const char *what, const char *resource)
{
    char bar[BAR_COLUMNS + 1];
    char line[COLUMNS + 1];
    unsigned filled = BAR_COLUMNS * percent(progress) / 100;
    if (progress->shown && progress->is_terminal) {
        memset(bar, '.', BAR_COLUMNS);
        memset(bar, '#', filled);
        bar[BAR_COLUMNS] = '\0';
        snprintf(
            line, sizeof line, "[%s] %3u%% %s on %.40s", bar, percent(progress), what,
            resource);
        print_over(line);
    }
    progress->done++;
}

void progress_end(const progress_t *progress)
{
    if (progress->shown && progress->is_terminal) {
        print_over("");
    }
}
