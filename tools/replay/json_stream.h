/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON of any size, value by value: an array is walked, and only one of its elements is in
 * memory at a time. What jansson parses here is at most JSON_STREAM_VALUE_MAX bytes.
 *
 * The first thing that is wrong is kept in `problem`, one printable line with its place;
 * from then on every call fails.
 */
#ifndef RMM_TOOLS_REPLAY_JSON_STREAM_H
#define RMM_TOOLS_REPLAY_JSON_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "replay/alloc_log.h"

#define JSON_STREAM_VALUE_MAX ((size_t)16 << 20)

/* The next piece of the text, valid until the next call; its length, 0 at the end. */
typedef size_t (*json_stream_more_fn)(void *context, const char **piece_out);

typedef struct json_stream {
    json_stream_more_fn more;
    void *context;
    const char *at, *end; /* of the piece */
    uint64_t line, column;
    size_t value_bytes; /* of the value that is being parsed */
    bool is_word;       /* that value is a number, true, false or null */
    char problem[LOG_PROBLEM_MAX];
} json_stream_t;

void json_stream_init(json_stream_t *stream, json_stream_more_fn more, void *context);

/* The next byte that is no white space, left where it is; -1 at the end. */
int json_stream_peek(json_stream_t *stream);

/* That byte is `expected`, and taken. */
bool json_stream_take(json_stream_t *stream, char expected);

/* The next value, whole; NULL if there is none or it is too large. */
json_t *json_stream_value(json_stream_t *stream);

/* Takes one element from the stream; false ends the walk. */
typedef bool (*json_stream_element_fn)(json_stream_t *stream, void *context);

/* True: the array was walked to its end. */
bool json_stream_array(
    json_stream_t *stream, json_stream_element_fn element, void *context);

#endif /* RMM_TOOLS_REPLAY_JSON_STREAM_H */
