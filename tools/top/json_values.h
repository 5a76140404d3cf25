/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a node that was written as JSON: each is checked before it is used. One that is null or
 * missing is not known: who wrote it did not have it. False: one is of another type.
 */
#ifndef RMM_TOP_JSON_VALUES_H
#define RMM_TOP_JSON_VALUES_H

#include <stdbool.h>

#include <jansson.h>

#include "node/node.h"
#include "segment/clean_text.h"

/* FIGURE_UNKNOWN: it is not known. */
static inline bool
json_get_figure(const json_t *object, const char *key, uint64_t *value_out)
{
    const json_t *value = json_object_get(object, key);
    *value_out =
        json_is_integer(value) ? (uint64_t)json_integer_value(value) : FIGURE_UNKNOWN;
    return value == NULL || json_is_integer(value) || json_is_null(value);
}

/* 0: it is not known. False also if it does not fit. */
static inline bool
json_get_number(const json_t *object, const char *key, uint32_t *value_out)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_integer_value(value); /* 0 of another type */
    bool fits = number >= 0 && number <= UINT32_MAX;
    *value_out = fits ? (uint32_t)number : 0;
    return value == NULL || json_is_null(value) || (json_is_integer(value) && fits);
}

/* Cleaned, and cut to fit; "": it is not known. */
static inline bool
json_get_text(const json_t *object, const char *key, char *text, size_t bytes)
{
    const json_t *value = json_object_get(object, key);
    rmm__text_copy(text, bytes, json_string_value(value));
    return value == NULL || json_is_string(value) || json_is_null(value);
}

/* All of a level. */
static inline bool
json_get_figures(const json_t *object, const figure_name_t *names, figures_t *figures)
{
    bool is_whole = true;
    for (; names->name != NULL; names++) {
        bool is_good =
            json_get_figure(object, names->name, figure_at(figures, names->offset));
        is_whole = is_whole && is_good;
    }
    return is_whole;
}

#endif /* RMM_TOP_JSON_VALUES_H */
