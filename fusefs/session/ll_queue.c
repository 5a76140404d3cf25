/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which requests are queued by user (user_queue.h): those that render a text whose
 * rendering may take long, and those of a user who already keeps THREADS_OF_USER threads of the
 * session busy. A request about a long text that renders nothing, as most reads of it,
 * is answered at once.
 *
 * The budget bounds how many requests of a user wait. A request that its reader gave up is
 * answered as soon as the kernel reports the interruption.
 */
#include "session/ll_session.h"

#include <errno.h>
#include <stdlib.h>

#include "model/tree.h"

#define THREADS_OF_USER 6u /* of the session's THREADS_MAX */

/* A request, and what it asks for. */
typedef struct queued {
    queue_item_t item;
    fuse_req_t req;
    fuse_ino_t ino;
    file_part_t part; /* of a read */
    int to_set;       /* of setattr */
    bool has_fi;
    struct fuse_file_info fi;
    void (*answer)(struct queued *queued);
} queued_t;

static bool is_long(fuse_ino_t ino)
{
    node_t node;
    return node_from_inode(ino, &node) && tree_is_long(node);
}

static void free_queued(session_t *session, queued_t *queued)
{
    budget_give(
        &watch_model(session->watch)->budget, queued->item.uid, BUDGET_LONG_READS, 1);
    free(queued);
}

static void run_queued(queue_item_t *item, bool is_end)
{
    queued_t *queued = (queued_t *)item;
    session_t *session = fuse_req_userdata(queued->req);
    if (is_end) {
        fuse_reply_err(queued->req, ENODEV);
    } else {
        queued->answer(queued);
    }
    free_queued(session, queued);
}

static bool is_interrupted(const void *request)
{
    return fuse_req_interrupted((fuse_req_t)(uintptr_t)request) != 0;
}

/* The reader got a signal. */
static void give_up(fuse_req_t req, void *data)
{
    session_t *session = data;
    queue_item_t *item = user_queue_take(&session->queue, req);
    if (item != NULL) {
        fuse_reply_err(req, EINTR);
        free_queued(session, (queued_t *)item);
    }
}

/* NULL: this user has too many waiting, or there is no memory. */
static queued_t *copy_queued(session_t *session, const queued_t *wanted, int *error_out)
{
    budget_t *budget = &watch_model(session->watch)->budget;
    uid_t uid = fuse_req_ctx(wanted->req)->uid;
    *error_out = EDQUOT;
    if (!budget_take(budget, uid, BUDGET_LONG_READS, 1)) {
        return NULL;
    }
    queued_t *queued = malloc(sizeof(*queued));
    if (queued == NULL) {
        budget_give(budget, uid, BUDGET_LONG_READS, 1);
        *error_out = ENOMEM;
        return NULL;
    }
    *queued = *wanted;
    queued->item =
        (queue_item_t){.uid = uid, .request = wanted->req, .answer = run_queued};
    return queued;
}

static void send_queued(const queued_t *wanted)
{
    fuse_req_t req = wanted->req;
    session_t *session = fuse_req_userdata(req);
    int error;
    queued_t *queued = copy_queued(session, wanted, &error);
    if (queued == NULL) {
        fuse_reply_err(req, error);
        return;
    }
    fuse_req_interrupt_func(req, give_up, session);
    queue_state_t state =
        user_queue_add(&session->queue, &queued->item, is_interrupted);
    if (state != QUEUE_ADDED) {
        free_queued(session, queued);
        fuse_reply_err(req, state == QUEUE_GIVEN_UP ? EINTR : ENOMEM);
    }
}

/* At once, if it is not long and the user is not too busy. */
static void start(queued_t *queued, bool is_long)
{
    session_t *session = fuse_req_userdata(queued->req);
    atomic_uint *busy = &session->busy[fuse_req_ctx(queued->req)->uid % BUSY_USERS];
    unsigned others = atomic_fetch_add_explicit(busy, 1, memory_order_relaxed);
    if (!is_long && others < THREADS_OF_USER) {
        queued->answer(queued); /* the request is gone then */
        atomic_fetch_sub_explicit(busy, 1, memory_order_relaxed);
    } else {
        atomic_fetch_sub_explicit(busy, 1, memory_order_relaxed);
        send_queued(queued);
    }
}

/* --- requests ------------------------------------------------------------------------- */

static void run_getattr(queued_t *queued)
{
    answer_getattr(queued->req, queued->ino, queued->has_fi ? &queued->fi : NULL);
}

void ll_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    queued_t queued = {.req = req, .ino = ino, .answer = run_getattr};
    if (fi != NULL) {
        queued.fi = *fi;
        queued.has_fi = true;
    }
    start(&queued, false);
}

static void run_setattr(queued_t *queued)
{
    answer_setattr(queued->req, queued->ino, queued->to_set);
}

void ll_setattr(
    fuse_req_t req, fuse_ino_t ino, struct stat *wanted, int to_set,
    struct fuse_file_info *fi)
{
    queued_t queued = {.req = req, .ino = ino, .to_set = to_set, .answer = run_setattr};
    (void)wanted;
    (void)fi;
    start(&queued, false);
}

static void run_open(queued_t *queued)
{
    answer_open(queued->req, queued->ino, &queued->fi);
}

void ll_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    queued_t queued = {.req = req, .ino = ino, .fi = *fi, .answer = run_open};
    start(&queued, is_long(ino));
}

static void run_opendir(queued_t *queued)
{
    answer_opendir(queued->req, queued->ino, &queued->fi);
}

void ll_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    queued_t queued = {.req = req, .ino = ino, .fi = *fi, .answer = run_opendir};
    start(&queued, false);
}

static void run_read(queued_t *queued)
{
    (void)answer_read(queued->req, &queued->part, &queued->fi, true);
}

void ll_read(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
    struct fuse_file_info *fi)
{
    const file_part_t part = {offset, size};
    atomic_fetch_add_explicit(
        &watch_model(watch_of(req))->reads_total, 1, memory_order_relaxed);
    bool is_text = is_long(ino);
    if (!is_text || !answer_read(req, &part, fi, false)) {
        queued_t queued = {
            .req = req, .ino = ino, .part = part, .fi = *fi, .answer = run_read};
        start(&queued, is_text);
    }
}
