/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients get: a response that several clients may share, and how many texts there are.
 *
 * A text of the tree stays in memory until its last client has it. Clients that read slowly, or
 * not at all, could make that any amount of memory: there are at most ANSWERS_TEXTS_MAX texts. One
 * more takes the place of the oldest, whose clients the server disconnects. While all places are
 * taken, a text younger than ANSWERS_SHARED_NS is sent again instead; so each client has
 * ANSWERS_TEXTS_MAX times that long at least.
 */
#ifndef RMM_EXPORTER_ANSWERS_H
#define RMM_EXPORTER_ANSWERS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ANSWERS_TEXTS_MAX 8
#define ANSWERS_SHARED_NS UINT64_C(1000000000)

typedef enum document {
    DOCUMENT_METRICS,
    DOCUMENT_ALL_METRICS,
    DOCUMENT_OPENMETRICS,
    DOCUMENT_PAGE,
    DOCUMENT_JSON,
    DOCUMENT_COUNT
} document_t;

typedef struct answer {
    struct MHD_Response *response;
    unsigned status;
    unsigned holders; /* clients, and the list */
    document_t document;
    uint64_t made_ns;
} answer_t;

typedef struct answers {
    answer_t *texts[ANSWERS_TEXTS_MAX]; /* from the oldest on */
    size_t count;
} answers_t;

/* The text of a document, listed. NULL: no memory. Closes fd. There is room in the list. */
answer_t *answers_add(answers_t *answers, document_t document, int fd, uint64_t bytes);

/* "The document cannot be read", held by nobody: a sample for metrics, else an error with the
 * reason. NULL: no memory. */
answer_t *answers_failure(document_t document, const char *reason);

/* A text to send once more, where the list is full; NULL: a new one must be read. */
answer_t *answers_shared(const answers_t *answers, document_t document);

/* Take the oldest text off a full list; its clients are the caller's matter until answer_drop().
 * NULL: there is room. */
answer_t *answers_displace(answers_t *answers);

/* One client less. A text that no client has is forgotten. */
void answers_release(answers_t *answers, answer_t *answer);

/* The name of the file in the tree, and what the text begins with. */
const char *document_file(document_t document);
const char *document_head(document_t document);

#endif /* RMM_EXPORTER_ANSWERS_H */
