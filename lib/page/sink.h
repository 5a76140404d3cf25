/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The destination of a page: a file, or the text of a file of rmmfs. It counts the bytes, so that
 * a page can keep within its limit.
 *
 * put() returns no error: the owner of a sink records errors in `to`, and checks them at the end.
 */
#ifndef RMM_PAGE_SINK_H
#define RMM_PAGE_SINK_H

#include <stddef.h>
#include <stdint.h>

typedef struct rmm_sink {
    void (*put)(void *to, const char *bytes, size_t length);
    void *to;
    uint64_t bytes; /* put so far */
} rmm_sink_t;

void rmm__sink_puts(rmm_sink_t *sink, const char *text);
/* Puts at most RMM_SINK_PRINT_MAX bytes and cuts the rest: not for texts of programs. */
#define RMM_SINK_PRINT_MAX 500
void rmm__sink_printf(rmm_sink_t *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/*
 * Puts a text of another process into HTML or XML: special characters are escaped, and '?' replaces
 * each byte that is not printable ASCII, as in the tree of rmmfs. (U+202E, for one, would reverse
 * the rest of the line.)
 */
void rmm__sink_foreign(rmm_sink_t *sink, const char *text);

#endif /* RMM_PAGE_SINK_H */
