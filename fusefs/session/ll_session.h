/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that know FUSE: the session, and the operations that one of them has
 * for another's table. Only for ll_*.c.
 *
 *   ll_ops      names, attributes, directories; the table of operations; the mount
 *   ll_files    open files: texts, commands, and requests that wait for a stream or a program
 *   ll_reports  opens that wait for a report of a program's blocks
 *   ll_queue    which requests wait in the queue of their user
 */
#ifndef RMM_FUSEFS_LL_SESSION_H
#define RMM_FUSEFS_LL_SESSION_H

#define FUSE_USE_VERSION 312

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/reports.h"
#include "control/waiting_writes.h"
#include "session/ll_ops.h"
#include "session/opened.h"
#include "session/user_queue.h"
#include "session/waiters.h"

/* Threads that answer requests of one user, at its uid modulo this: two users seldom share a
 * place, and then the limit (ll_queue.c). */
#define BUSY_USERS 256u

struct session {
    struct fuse_session *fuse;
    watch_t *watch;
    opened_list_t opened;
    waiters_t waiters;
    waiting_writes_t writes;
    user_queue_t queue; /* while the loop runs */
    reports_t reports;
    atomic_uint busy[BUSY_USERS];
    bool mounted;
};

static inline watch_t *watch_of(fuse_req_t req)
{
    const session_t *session = fuse_req_userdata(req);
    return session->watch;
}

static inline opened_list_t *list_of(fuse_req_t req)
{
    session_t *session = fuse_req_userdata(req);
    return &session->opened;
}

static inline file_t *file_of(const struct fuse_file_info *fi)
{
    return (file_t *)(uintptr_t)fi->fh;
}

/* --- ll_ops.c ------------------------------------------------------------------------- */

reader_t reader_of(fuse_req_t req);
void answer_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void answer_setattr(fuse_req_t req, fuse_ino_t ino, int to_set);
void answer_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

/* --- ll_queue.c ----------------------------------------------------------------------- */

void ll_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ll_setattr(
    fuse_req_t req, fuse_ino_t ino, struct stat *wanted, int to_set,
    struct fuse_file_info *fi);
void ll_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ll_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ll_read(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
    struct fuse_file_info *fi);

/* --- ll_reports.c --------------------------------------------------------------------- */

void ll_open_reporting(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/* Open what need not wait any longer. */
void look_at_reports(session_t *session);
/* The loop is over, and nothing is queued any more: answer all that wait, and those to come. */
void end_reports(session_t *session);

/* --- ll_files.c ----------------------------------------------------------------------- */

void answer_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/* False: not answered, because it would take long and may not wait (file_read()). */
bool answer_read(
    fuse_req_t req, const file_part_t *part, struct fuse_file_info *fi, bool may_wait);
void ll_lseek(
    fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
    struct fuse_file_info *fi);
void ll_write(
    fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
    struct fuse_file_info *fi);
void ll_poll(
    fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
    struct fuse_pollhandle *handle);
void ll_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/* The session ends: answer all that wait. */
void files_end(session_t *session);

#endif /* RMM_FUSEFS_LL_SESSION_H */
