/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jansson gets the text byte by byte, so that it reads nothing behind its value: the end of a
 * string, an object and an array shows itself. A number or a word ends at what follows it,
 * which is kept from jansson.
 */
#include "replay/json_stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void json_stream_init(json_stream_t *stream, json_stream_more_fn more, void *context)
{
    *stream = (json_stream_t){.more = more, .context = context, .line = 1};
}

/* Cleans the message, because jansson's may quote the file. */
static void fail(json_stream_t *stream, const char *text)
{
    if (stream->problem[0] != '\0') {
        return;
    }
    snprintf(
        stream->problem, sizeof(stream->problem),
        "damaged JSON: line %" PRIu64 ", column %" PRIu64 ": %.80s", stream->line,
        stream->column, text);
    for (char *c = stream->problem; *c != '\0'; c++) {
        *c = (char)(*c >= ' ' && *c <= '~' ? *c : '?');
    }
}

/* --- bytes -------------------------------------------------------------------------------- */

static int next_byte(json_stream_t *stream)
{
    if (stream->at == stream->end) {
        size_t length = stream->more(stream->context, &stream->at);
        stream->end = stream->at + length;
        if (length == 0) {
            return -1;
        }
    }
    return (unsigned char)*stream->at;
}

static void advance(json_stream_t *stream)
{
    stream->column++;
    if (*stream->at++ == '\n') {
        stream->line++;
        stream->column = 0;
    }
}

static bool is_space(int byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

int json_stream_peek(json_stream_t *stream)
{
    int byte = next_byte(stream);
    while (is_space(byte)) {
        advance(stream);
        byte = next_byte(stream);
    }
    return byte;
}

bool json_stream_take(json_stream_t *stream, char expected)
{
    char text[] = "'?' expected";
    if (stream->problem[0] == '\0' && json_stream_peek(stream) == expected) {
        advance(stream);
        return true;
    }
    text[1] = expected;
    fail(stream, text);
    return false;
}

/* --- values ------------------------------------------------------------------------------- */

static size_t feed(void *buffer, size_t bytes, void *context)
{
    json_stream_t *stream = context;
    int byte = next_byte(stream);
    bool ends_word = stream->is_word &&
                     (is_space(byte) || byte == ',' || byte == ']' || byte == '}');
    if (byte < 0 || ends_word || bytes == 0) {
        return 0;
    }
    if (stream->value_bytes++ == JSON_STREAM_VALUE_MAX) {
        return (size_t)-1;
    }
    *(char *)buffer = (char)byte;
    advance(stream);
    return 1;
}

json_t *json_stream_value(json_stream_t *stream)
{
    json_error_t error;
    int first = json_stream_peek(stream);
    if (stream->problem[0] != '\0') {
        return NULL;
    }
    stream->is_word = first != '{' && first != '[' && first != '"';
    stream->value_bytes = 0;
    json_t *value = json_load_callback(
        feed, stream, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &error);
    if (value == NULL) {
        fail(
            stream, stream->value_bytes > JSON_STREAM_VALUE_MAX
                        ? "a value of more than 16 MiB"
                        : error.text);
    }
    return value;
}

bool json_stream_array(
    json_stream_t *stream, json_stream_element_fn element, void *context)
{
    if (!json_stream_take(stream, '[')) {
        return false;
    }
    if (json_stream_peek(stream) == ']') {
        return json_stream_take(stream, ']');
    }
    while (element(stream, context)) {
        if (json_stream_peek(stream) != ',') {
            return json_stream_take(stream, ']');
        }
        (void)json_stream_take(stream, ',');
    }
    return false;
}
