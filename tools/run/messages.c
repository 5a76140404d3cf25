/* SPDX-License-Identifier: Apache-2.0 */
/* Messages; see messages.h. */
#include "run/messages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "diag/diag_names.h"
#include "run/finding_text.h"
#include "run/names.h"
#include "run/text.h"

/* In place: no spaces at the begin of a line, no line break at the end of all. */
static void unindent(char *text)
{
    char *to = text;
    bool is_begin = true;
    for (const char *from = text; *from != '\0'; from++) {
        if (!is_begin || *from != ' ') {
            *to++ = *from;
            is_begin = *from == '\n';
        }
    }
    *to = '\0';
    if (to > text && to[-1] == '\n') {
        to[-1] = '\0';
    }
}

char *run_message_of_finding(const rmm_diag_finding_info_t *finding)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) {
        return NULL;
    }
    run_finding_print(finding, out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    run_text_clean(text);
    unindent(text);
    size_t prefix = strlen(rmm__diag_finding_name(finding->kind)) + strlen(": ");
    memmove(text, text + prefix, strlen(text + prefix) + 1);
    return text;
}

char *run_message_of_leak(const run_verdict_t *verdict)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) {
        return NULL;
    }
    fprintf(
        out, "%" PRIu64 " %s of %" PRIu64 " bytes not freed, of ", verdict->count,
        verdict->count == 1 ? "block" : "blocks", verdict->bytes);
    run_resource_print(verdict->resource_id, &verdict->resource, out);
    if (verdict->first_user[0] != '\0') {
        fputs(", first used by ", out);
        run_name_print(verdict->first_user, "", out);
    }
    fputs("\nfree it, unless it is meant to live as long as the program", out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    run_text_clean(text);
    return text;
}
