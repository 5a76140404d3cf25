/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the directory of the segments. A directory that another user could write to or
 * put in our way is refused, but for the system's, which is sticky like /tmp.
 */
#include "segment/runtime_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Room for "/" and a file's name behind the directory. */
#define LONGEST_DIR (RMM_RUNTIME_DIR_BYTES - 1)

typedef struct answer {
    char *path; /* [RMM_RUNTIME_DIR_BYTES] */
    char *reason;
    size_t reason_bytes;
} answer_t;

__attribute__((format(printf, 2, 3))) static bool
refuse(const answer_t *answer, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(answer->reason, answer->reason_bytes, format, arguments);
    va_end(arguments);
    return false;
}

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* Make answer->path if missing; false with a reason. */
static bool make_dir(const answer_t *answer)
{
    if (mkdir(answer->path, 0700) != 0 && errno != EEXIST) {
        return refuse(answer, "cannot make %s: %s", answer->path, strerror(errno));
    }
    return true;
}

static bool is_writable(const char *path)
{
    return faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
}

/* The user named it and is responsible for it: it only has to work. */
static bool use_wanted(const char *wanted, const answer_t *answer)
{
    struct stat status;

    if (wanted[0] != '/' || strlen(wanted) > LONGEST_DIR) {
        return refuse(
            answer, "RMM_RUNTIME_DIR must be an absolute path of at most %d bytes",
            LONGEST_DIR);
    }
    snprintf(answer->path, RMM_RUNTIME_DIR_BYTES, "%s", wanted);
    if (!make_dir(answer)) {
        return false;
    }
    if (stat(answer->path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return refuse(answer, "RMM_RUNTIME_DIR %s is not a directory", answer->path);
    }
    if (!is_writable(answer->path)) {
        return refuse(
            answer, "RMM_RUNTIME_DIR %s is not writable: %s", answer->path,
            strerror(errno));
    }
    return true;
}

static bool use_system(const char *system, const answer_t *answer)
{
    struct stat status;

    if (!is_set(system) || stat(system, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return false;
    }
    if (!is_writable(system)) {
        return refuse(
            answer, "%s, where rmmfs looks, is not writable: %s (mode %04o, uid %u)",
            system, strerror(errno), (unsigned)(status.st_mode & 07777),
            (unsigned)status.st_uid);
    }
    snprintf(answer->path, RMM_RUNTIME_DIR_BYTES, "%s", system);
    return true;
}

/* A directory of this user alone, made if missing. */
static bool use_private(uid_t uid, const answer_t *answer)
{
    struct stat status;

    if (!make_dir(answer)) {
        return false;
    }
    if (lstat(answer->path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return refuse(answer, "%s is not a directory: remove it", answer->path);
    }
    if (status.st_uid != uid) {
        return refuse(
            answer, "%s belongs to uid %u: have it removed, or set RMM_RUNTIME_DIR",
            answer->path, (unsigned)status.st_uid);
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return refuse(answer, "%s is writable for others: chmod 700 it", answer->path);
    }
    if (!is_writable(answer->path)) {
        return refuse(
            answer, "%s is not writable: %s", answer->path,
            errno == EACCES ? "chmod 700 it" : strerror(errno));
    }
    return true;
}

/* sudo may keep another user's XDG_RUNTIME_DIR: nothing of ours belongs there. */
static bool use_session(const char *session, uid_t uid, const answer_t *answer)
{
    struct stat status;

    if (!is_set(session) || session[0] != '/' ||
        strlen(session) + sizeof("/rmm") > RMM_RUNTIME_DIR_BYTES ||
        stat(session, &status) != 0 || status.st_uid != uid) {
        return false;
    }
    snprintf(answer->path, RMM_RUNTIME_DIR_BYTES, "%s/rmm", session);
    return use_private(uid, answer);
}

/* One of this user's. */
static bool use_own(const rmm_runtime_roots_t *roots, const answer_t *answer)
{
    if (use_session(roots->session, roots->uid, answer)) {
        return true;
    }
    snprintf(
        answer->path, RMM_RUNTIME_DIR_BYTES, "%s/rmm-%u", roots->shared,
        (unsigned)roots->uid);
    return use_private(roots->uid, answer);
}

bool rmm__runtime_dir_from(
    const rmm_runtime_roots_t *roots, char path[RMM_RUNTIME_DIR_BYTES], char *reason,
    size_t reason_bytes)
{
    const answer_t answer = {path, reason, reason_bytes};
    char why_not_system[RMM_RUNTIME_DIR_BYTES + 128];

    reason[0] = '\0';
    if (is_set(roots->wanted)) {
        return use_wanted(roots->wanted, &answer);
    }
    if (use_system(roots->system, &answer)) {
        return true;
    }
    snprintf(why_not_system, sizeof(why_not_system), "%s", reason);
    if (!use_own(roots, &answer)) {
        return false;
    }
    snprintf(reason, reason_bytes, "%s", why_not_system);
    return true;
}

bool rmm__runtime_dir(
    char path[RMM_RUNTIME_DIR_BYTES], char *reason, size_t reason_bytes)
{
    const rmm_runtime_roots_t roots = {
        .wanted = secure_getenv("RMM_RUNTIME_DIR"),
        .system = RMM_SYSTEM_RUNTIME_DIR,
        .session = secure_getenv("XDG_RUNTIME_DIR"),
        .shared = "/dev/shm",
        .uid = geteuid()};

    return rmm__runtime_dir_from(&roots, path, reason, reason_bytes);
}
