/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON as it is printed, without building it first: a trace can be larger than the memory that
 * jansson (common/json.h) would need for it. The result may stand in a <script> of HTML, too.
 */
#ifndef RMM_TOOLS_TIMELINE_JSON_TEXT_H
#define RMM_TOOLS_TIMELINE_JSON_TEXT_H

#include <stdio.h>

/* The text, which is UTF-8, as a JSON string. */
void json_text_put(FILE *out, const char *text);

#endif /* RMM_TOOLS_TIMELINE_JSON_TEXT_H */
