/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The FUSE session: everything that needs libfuse is behind this header.
 *
 * Order: open, mount, (daemonize), serve, loop; close at the end, in any case. Requests
 * that come before the loop wait in the kernel.
 */
#ifndef RMM_FUSEFS_LL_OPS_H
#define RMM_FUSEFS_LL_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "programs/watch.h"

typedef struct session session_t;

typedef struct session_config {
    bool debug;
    bool allow_other;
    const char *mount_options; /* ",noatime": more for the kernel, may be "" */
} session_config_t;

/* False or NULL with a reason: one line, without what libfuse prints itself. */
session_t *
session_open(const session_config_t *config, char *reason, size_t reason_bytes);
bool session_mount(
    session_t *session, const char *path, char *reason, size_t reason_bytes);

/* Leave the terminal; the parent exits with 0 when this process is on its own. */
bool session_daemonize(void);

/* Requests are answered from `watch`, which is borrowed until close. */
void session_serve(session_t *session, watch_t *watch);

/* Answer requests until session_exit or an unmount. False: the kernel's answer failed. */
bool session_loop(session_t *session);

/* From any thread. The loop notices when it is interrupted by a signal. */
void session_exit(session_t *session);

/* The kernel should ask for the directory of a process again, whose serial this is (model.h). */
void session_forget(session_t *session, uint32_t serial);

/* To poll: a reader began to wait for a stream. */
int session_news_fd(const session_t *session);

/* After watch_tick(): answer the requests that wait for a stream that has something now. Says how
 * soon it must be called again for those that still wait: for events later, as they are found at
 * looks that are rare. */
typedef enum session_due { SESSION_IDLE, SESSION_LATER, SESSION_SOON } session_due_t;
session_due_t session_wake(session_t *session);

/* False: not mounted, cut, or unmounted by another process. NULL is not. */
bool session_is_connected(const session_t *session);

/* session_close() is not to unmount. */
void session_leave_mounted(session_t *session);

/* Unmount (at once, also while programs have files open) what is mounted at the path of
 * session_mount(), if it is connected, and free. NULL is ignored. */
void session_close(session_t *session);

#endif /* RMM_FUSEFS_LL_OPS_H */
