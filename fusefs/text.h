/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a file while it is rendered. Small texts (every value file) are stored
 * inside the structure, so rendering them allocates nothing.
 *
 * A text that cannot grow keeps its content and sets `failed`: callers print to the end
 * and check once. Do not copy the structure: data may point into it.
 */
#ifndef RMM_FUSEFS_TEXT_H
#define RMM_FUSEFS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_SMALL_BYTES 192

typedef struct text {
    char *data; /* not NUL-terminated */
    size_t length, capacity;
    bool failed;
    char small[TEXT_SMALL_BYTES];
} text_t;

void text_init(text_t *text);
void text_fini(text_t *text);

/* Empty again; keeps its memory. */
void text_clear(text_t *text);

void text_append(text_t *text, const char *bytes, size_t length);
void text_puts(text_t *text, const char *string);
void text_printf(text_t *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A string that another process wrote: control characters become '?'. */
void text_put_foreign(text_t *text, const char *string);

#endif /* RMM_FUSEFS_TEXT_H */
