/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes XML 1.0 that is well-formed whatever its texts are: what XML cannot have in any form
 * becomes '?' (text.h). An element has either elements in it or one text. Failures stay in the
 * stream's error flag.
 */
#ifndef RMM_TOOLS_RUN_XML_H
#define RMM_TOOLS_RUN_XML_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct xml {
    FILE *out;
    unsigned int depth;
    bool is_in_tag; /* its '>' is not written yet */
    bool has_text;  /* in the innermost element */
} xml_t;

/* The names of elements and attributes are the program's own. */
void xml_begin(xml_t *xml, FILE *out);
void xml_open(xml_t *xml, const char *element);
void xml_attribute(xml_t *xml, const char *name, const char *value);
void xml_count(xml_t *xml, const char *name, uint64_t value);
void xml_text(xml_t *xml, const char *text);
void xml_close(xml_t *xml, const char *element);

#endif /* RMM_TOOLS_RUN_XML_H */
