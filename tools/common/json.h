/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the programs write JSON with jansson. What is not known is null, never 0. A header
 * only, so that a program without JSON needs no jansson.
 */
#ifndef RMM_TOOLS_COMMON_JSON_H
#define RMM_TOOLS_COMMON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* Takes over value; false: no memory for the value or for the object. */
static inline bool json_put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

static inline json_t *json_count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static inline json_t *json_count_or_null(bool is_known, uint64_t value)
{
    return is_known ? json_count(value) : json_null();
}

static inline json_t *json_real_or_null(bool is_known, double value)
{
    return is_known ? json_real(value) : json_null();
}

/* null for what is empty, and for what is not UTF-8, as a path may be. */
static inline json_t *json_text_or_null(const char *text)
{
    json_t *value = text[0] != '\0' ? json_string(text) : NULL;
    return value != NULL ? value : json_null();
}

/* The value if it is whole; otherwise NULL, and it is given back. */
static inline json_t *json_whole_or_null(json_t *value, bool is_whole)
{
    if (!is_whole) {
        json_decref(value);
        return NULL;
    }
    return value;
}

/* The i-th element of what `from` is; NULL: no memory. */
typedef json_t *(*json_element_fn)(const void *from, size_t i);

/* All of them; NULL: no memory. */
static inline json_t *
json_array_of(size_t count, json_element_fn element, const void *from)
{
    json_t *array = json_array();
    bool is_whole = array != NULL;
    for (size_t i = 0; is_whole && i < count; i++) {
        is_whole = json_array_append_new(array, element(from, i)) == 0;
    }
    return json_whole_or_null(array, is_whole);
}

#endif /* RMM_TOOLS_COMMON_JSON_H */
