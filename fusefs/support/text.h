/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a file while it is rendered. Small texts (every value file) are stored
 * inside the structure, so rendering them allocates nothing.
 *
 * A text that cannot grow keeps its content and sets `failed`: callers print to the end
 * and check once. Do not copy the structure: data may point into it.
 *
 * Hostile programs can have long lists, so a text has a limit. Lists are made of rows: the
 * one that passes the limit is taken back, and so is each one after it; text_end_rows()
 * says how many were. A text of other make that passes the limit fails.
 *
 * The memory of a text can be charged to a user (budget.h): then it also fails where that
 * user has too much.
 */
#ifndef RMM_FUSEFS_TEXT_H
#define RMM_FUSEFS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/budget.h"

#define TEXT_SMALL_BYTES 192
#define TEXT_BYTES_MAX ((size_t)8 << 20)       /* of one process's files */
#define TEXT_NODE_BYTES_MAX ((size_t)24 << 20) /* of files about all processes */
#define TEXT_ROW_BYTES_MAX ((size_t)64 << 10)  /* a row may pass the limit by so much */

typedef enum text_failure {
    TEXT_GOOD,
    TEXT_NO_MEMORY,
    TEXT_TOO_LONG,
    TEXT_OVER_BUDGET
} text_failure_t;

typedef struct text {
    char *data; /* not NUL-terminated */
    size_t length, capacity, limit;
    text_failure_t failed;
    size_t row; /* where the row that is being printed begins */
    uint64_t rows_left_out;
    budget_t *budget; /* NULL: charged to no user */
    uid_t uid;        /* of the reader, who is charged */
    bool is_member;   /* the reader is of the group of hiding.h */
    size_t charged;
    char small[TEXT_SMALL_BYTES];
} text_t;

void text_init(text_t *text);
void text_fini(text_t *text);

/* From now on its memory, beyond what is inside, is charged to uid. The budget is borrowed. */
void text_charge(text_t *text, budget_t *budget, uid_t uid);

/* 0, -ENOMEM, -EFBIG (too long), -EDQUOT (over budget) */
int text_error(const text_t *text);

/* Empty again; keeps its memory and its limit. */
void text_clear(text_t *text);

/* Give back the memory that the content does not need. */
void text_trim(text_t *text);

/*
 * Other memory that a renderer needs meanwhile, charged like the text's own. False: the
 * text has failed.
 */
bool text_take_scratch(text_t *text, size_t bytes);
void text_give_scratch(text_t *text, size_t bytes);

/* Begin a row: all that is printed until text_end_row(). */
void text_begin_row(text_t *text);
/* False: the row passed the limit and is taken back, so further rows need not be printed. */
bool text_end_row(text_t *text);
/* Rows that were not even printed. */
void text_leave_out(text_t *text, uint64_t rows);
/* A line that says how many rows are left out, if any are; and none are from here on. */
void text_end_rows(text_t *text);

/* Move the contents of `from` to `to`; `from` is empty then. */
void text_move(text_t *to, text_t *from);

/* Room for so many bytes at the end, for the caller to fill and add to length; NULL: failed. */
char *text_reserve(text_t *text, size_t bytes);
void text_append(text_t *text, const char *bytes, size_t length);
void text_puts(text_t *text, const char *string);
void text_printf(text_t *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Tables and names show a byte that another process wrote only if it is printable ASCII, else
 * `otherwise`. A newline would forge a row, and U+202E turns the rest of a line around. */
static inline char text_shown(char byte, char otherwise)
{
    return byte >= 0x20 && byte < 0x7f ? byte : otherwise;
}

/* A string that another process wrote, '?' for each byte that is not shown. */
void text_put_foreign(text_t *text, const char *string);

#endif /* RMM_FUSEFS_TEXT_H */
