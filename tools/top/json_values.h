/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a node that was written as JSON: each is checked before it is used. */
#ifndef RMM_TOP_JSON_VALUES_H
#define RMM_TOP_JSON_VALUES_H

#include <stdbool.h>

#include <jansson.h>

#include "segment/text.h"
#include "top/node.h"

/* NODE_UNKNOWN where it is null. False: it is neither that nor a number. */
static inline bool
json_get_figure(const json_t *object, const char *key, uint64_t *value_out)
{
    const json_t *value = json_object_get(object, key);
    *value_out =
        json_is_integer(value) ? (uint64_t)json_integer_value(value) : NODE_UNKNOWN;
    return json_is_integer(value) || json_is_null(value);
}

/* One that is there, and fits; else 0. */
static inline bool
json_get_number(const json_t *object, const char *key, uint32_t *value_out)
{
    uint64_t value;
    bool is_number = json_get_figure(object, key, &value) && value <= UINT32_MAX;
    *value_out = is_number ? (uint32_t)value : 0;
    return is_number;
}

/* Cleaned, and cut to fit; "" where it is null. */
static inline bool
json_get_text(const json_t *object, const char *key, char *text, size_t bytes)
{
    const json_t *value = json_object_get(object, key);
    rmm__text_copy(text, bytes, json_string_value(value));
    return json_is_string(value) || json_is_null(value);
}

/* False: one of them is not there. */
static inline bool json_get_figures(const json_t *object, node_figures_t *figures)
{
    bool is_whole = true;
#define X(name) is_whole = json_get_figure(object, #name, &figures->name) && is_whole;
    NODE_FIGURES(X)
#undef X
    return is_whole;
}

#endif /* RMM_TOP_JSON_VALUES_H */
