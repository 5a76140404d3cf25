/* SPDX-License-Identifier: Apache-2.0 */
/* See answers.h. */
#include "exporter/answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

#define UP_HEAD                                                                        \
    "# HELP rmm_up Whether rmmfs answered; where it is 0, all other figures are "      \
    "missing.\n"                                                                       \
    "# TYPE rmm_up gauge\n"

typedef struct document_form {
    const char *file, *type;
    const char *head;    /* before the text */
    const char *failure; /* instead of it; NULL: an error with the reason */
} document_form_t;

static const document_form_t forms[DOCUMENT_COUNT] = {
    [DOCUMENT_METRICS] =
        {"metrics", "text/plain; version=0.0.4; charset=utf-8", UP_HEAD "rmm_up 1\n",
         UP_HEAD "rmm_up 0\n"},
    [DOCUMENT_ALL_METRICS] =
        {"metrics.all", "text/plain; version=0.0.4; charset=utf-8",
         UP_HEAD "rmm_up 1\n", UP_HEAD "rmm_up 0\n"},
    [DOCUMENT_OPENMETRICS] =
        {"metrics.om", "application/openmetrics-text; version=1.0.0; charset=utf-8",
         UP_HEAD "rmm_up 1\n", UP_HEAD "rmm_up 0\n# EOF\n"},
    [DOCUMENT_PAGE] = {"index.html", "text/html; charset=utf-8", "", NULL},
    [DOCUMENT_JSON] = {"json", "application/json", "", NULL},
};

const char *document_file(document_t document)
{
    return forms[document].file;
}

const char *document_head(document_t document)
{
    return forms[document].head;
}

/* Takes the response. NULL: no memory. */
static answer_t *
make(struct MHD_Response *response, unsigned status, document_t document)
{
    const char *type =
        status == MHD_HTTP_OK ? forms[document].type : "text/plain; charset=utf-8";
    answer_t *answer = response != NULL ? calloc(1, sizeof(*answer)) : NULL;
    if (answer == NULL ||
        MHD_add_response_header(response, "Content-Type", type) != MHD_YES ||
        MHD_add_response_header(response, "Cache-Control", "no-store") != MHD_YES) {
        free(answer);
        if (response != NULL) {
            MHD_destroy_response(response);
        }
        return NULL;
    }
    *answer = (answer_t){
        .response = response,
        .status = status,
        .document = document,
        .made_ns = clock_ns()};
    return answer;
}

answer_t *answers_add(answers_t *answers, document_t document, int fd, uint64_t bytes)
{
    struct MHD_Response *response = MHD_create_response_from_fd64(bytes, fd);
    if (response == NULL) {
        (void)close(fd);
    }
    answer_t *answer = make(response, MHD_HTTP_OK, document);
    if (answer != NULL) {
        answers->texts[answers->count++] = answer;
    }
    return answer;
}

answer_t *answers_failure(document_t document, const char *reason)
{
    char text[512];
    const char *sample = forms[document].failure;
    (void)snprintf(
        text, sizeof(text), sample != NULL ? "%s" : "rmm-exporter: %s\n",
        sample != NULL ? sample : reason);
    return make(
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY),
        sample != NULL ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, document);
}

answer_t *answers_shared(const answers_t *answers, document_t document)
{
    for (size_t i = answers->count; answers->count == ANSWERS_TEXTS_MAX && i > 0; i--) {
        answer_t *text = answers->texts[i - 1];
        if (text->document == document) {
            return clock_ns() - text->made_ns < ANSWERS_SHARED_NS ? text : NULL;
        }
    }
    return NULL;
}

static void unlist(answers_t *answers, const answer_t *answer)
{
    size_t kept = 0;
    for (size_t i = 0; i < answers->count; i++) {
        if (answers->texts[i] != answer) {
            answers->texts[kept++] = answers->texts[i];
        }
    }
    answers->count = kept;
}

answer_t *answers_displace(answers_t *answers)
{
    answer_t *oldest = answers->texts[0];
    if (answers->count < ANSWERS_TEXTS_MAX) {
        return NULL;
    }
    unlist(answers, oldest);
    return oldest;
}

void answers_release(answers_t *answers, answer_t *answer)
{
    if (--answer->holders == 0) {
        unlist(answers, answer);
        MHD_destroy_response(answer->response);
        free(answer);
    }
}
