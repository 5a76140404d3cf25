/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a page goes: a file, or the text of a file of the daemon. Counts what was put, so that
 * pages end in time.
 *
 * Errors are the owner's: it remembers them in `to` and looks at the end.
 */
#ifndef RMM_PAGE_SINK_H
#define RMM_PAGE_SINK_H

#include <stddef.h>
#include <stdint.h>

typedef struct rmm_sink {
    void (*put)(void *to, const char *bytes, size_t length);
    void *to;
    uint64_t bytes; /* that were put */
} rmm_sink_t;

void rmm_sink_puts(rmm_sink_t *sink, const char *text);
/* At most RMM_SINK_PRINT_MAX bytes; the rest is cut, so no text of a program goes here. */
#define RMM_SINK_PRINT_MAX 500
void rmm_sink_printf(rmm_sink_t *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/*
 * A text of another process as HTML or XML shows it: what is special there is escaped, and '?'
 * stands for each byte that is no printable ASCII, as in the tree of the daemon: U+202E turns the
 * rest of a line around.
 */
void rmm_sink_foreign(rmm_sink_t *sink, const char *text);

#endif /* RMM_PAGE_SINK_H */
