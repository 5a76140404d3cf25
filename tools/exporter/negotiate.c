/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See negotiate.h. The header is a list of types with parameters (RFC 9110, 12.5.1); what is
 * malformed counts as not there.
 */
#include "exporter/negotiate.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

typedef struct range {
    const char *text;
    size_t length;
} range_t;

/* The part of *rest up to the separator, without blanks around it; *rest moves behind it. */
static range_t next_part(range_t *rest, char separator)
{
    const char *end = memchr(rest->text, separator, rest->length);
    range_t part = {
        rest->text, end != NULL ? (size_t)(end - rest->text) : rest->length};
    size_t used = part.length + (end != NULL);
    rest->text += used;
    rest->length -= used;
    while (part.length > 0 && strchr(" \t", part.text[0]) != NULL) {
        part.text++;
        part.length--;
    }
    while (part.length > 0 && strchr(" \t", part.text[part.length - 1]) != NULL) {
        part.length--;
    }
    return part;
}

static bool is_word(range_t part, const char *word)
{
    return part.length == strlen(word) &&
           strncasecmp(part.text, word, part.length) == 0;
}

static bool begins_with(range_t part, const char *word)
{
    return part.length >= strlen(word) &&
           strncasecmp(part.text, word, strlen(word)) == 0;
}

/* 0 to 1000 of "q=0.75". */
static int parse_weight(range_t part)
{
    int weight = 0, unit = 1000;
    for (size_t i = 2; i < part.length && unit > 0; i++) {
        if (part.text[i] >= '0' && part.text[i] <= '9') {
            weight += (part.text[i] - '0') * unit;
            unit /= 10;
        } else if (part.text[i] != '.') {
            break;
        }
    }
    return weight > 1000 ? 1000 : weight;
}

/* The weight of one entry; 0 if it asks for a version that there is not. */
static int weight_of(range_t parameters, const char *version)
{
    int weight = 1000;
    while (parameters.length > 0) {
        range_t part = next_part(&parameters, ';');
        if (begins_with(part, "q=")) {
            weight = parse_weight(part);
        } else if (begins_with(part, "version=") && !is_word(part, version)) {
            return 0;
        }
    }
    return weight;
}

static void raise(int *most, int weight)
{
    *most = weight > *most ? weight : *most;
}

bool negotiate_openmetrics(const char *accept)
{
    range_t entries = {
        accept != NULL ? accept : "", accept != NULL ? strlen(accept) : 0};
    int openmetrics = 0, text = 0;
    while (entries.length > 0) {
        range_t parameters = next_part(&entries, ',');
        range_t type = next_part(&parameters, ';');
        if (is_word(type, "application/openmetrics-text")) {
            raise(&openmetrics, weight_of(parameters, "version=1.0.0"));
        } else if (is_word(type, "text/plain")) {
            raise(&text, weight_of(parameters, "version=0.0.4"));
        } else if (is_word(type, "text/*") || is_word(type, "*/*")) {
            raise(&text, weight_of(parameters, ""));
        }
    }
    return openmetrics > text;
}
