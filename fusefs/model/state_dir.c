/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses and opens the folder of the state; see state_dir.h. The folder is opened from its
 * parent without following links or mounts: in a shared parent anybody may have put
 * something in its place, which must neither be written to nor waited for.
 */
#include "model/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segment/open_in.h"
#include "segment/runtime_dir.h"
#include "segment/temporary_file.h"
#include "support/daemon_log.h"

#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

/* --- choosing ------------------------------------------------------------------------- */

static bool is_own(const char *path)
{
    struct stat status;
    return path[0] == '/' && stat(path, &status) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == geteuid();
}

static void choose_below(const char *wanted, state_dir_t *dir)
{
    struct stat status;
    if (stat(wanted, &status) == 0 && status.st_uid == geteuid() &&
        (status.st_mode & OTHERS_WRITE) == 0) {
        (void)snprintf(dir->path, STATE_DIR_BYTES, "%s", wanted);
        dir->is_given = true;
    } else {
        (void)snprintf(
            dir->path, STATE_DIR_BYTES, "%.256s/rmmfs.%u", wanted, (unsigned)geteuid());
    }
}

void state_dir_choose(const char *wanted, state_dir_t *dir)
{
    char *path = dir->path;
    char session[32];
    const char *given = secure_getenv("XDG_RUNTIME_DIR");
    unsigned uid = (unsigned)geteuid();
    dir->is_given = false;
    (void)snprintf(session, sizeof(session), "/run/user/%u", uid);
    if (wanted != NULL) {
        choose_below(wanted, dir);
    } else if (uid == 0) {
        (void)snprintf(path, STATE_DIR_BYTES, RMM_TOTALS_DIR);
    } else if (given != NULL && strlen(given) < 256 && is_own(given)) {
        (void)snprintf(path, STATE_DIR_BYTES, "%s/rmmfs", given);
    } else if (is_own(session)) {
        (void)snprintf(path, STATE_DIR_BYTES, "%s/rmmfs", session);
    } else {
        (void)snprintf(path, STATE_DIR_BYTES, "/dev/shm/rmmfs-%u", uid);
    }
}

/* --- opening -------------------------------------------------------------------------- */

typedef struct place {
    int parent;
    const char *path, *name; /* of the folder */
    char *reason;
    size_t reason_bytes;
} place_t;

static int refuse(const place_t *place, const char *what, const char *why)
{
    (void)snprintf(
        place->reason, place->reason_bytes, "%s %.250s: %s", what, place->path, why);
    return -1;
}

/* -1: what has the name is not a folder that only this user may write to. */
static int take(int fd, const char **why_out)
{
    struct stat status;
    if (fd < 0) {
        *why_out = strerror(errno);
        return -1;
    }
    bool known = fstat(fd, &status) == 0;
    if (known && status.st_uid == geteuid() &&
        ((status.st_mode & OTHERS_WRITE) == 0 || fchmod(fd, S_IRWXU) == 0)) {
        return fd;
    }
    *why_out = known ? "it belongs to another user" : strerror(errno);
    (void)close(fd);
    return -1;
}

/* Root alone may do this in a sticky folder. */
static bool move_aside(const place_t *place)
{
    char aside[128];
    (void)snprintf(
        aside, sizeof(aside), "%.64s.not-ours.%016" PRIx64, place->name,
        rmm__random64());
    if (geteuid() != 0 ||
        renameat(place->parent, place->name, place->parent, aside) != 0) {
        return false;
    }
    log_warn("%s did not belong to root: renamed it to %s", place->path, aside);
    return true;
}

static int open_place(const place_t *place)
{
    const char *why = "";
    int fd = -1;
    for (int i = 0; i < 2 && fd < 0; i++) {
        if (mkdirat(place->parent, place->name, S_IRWXU) != 0 && errno != EEXIST) {
            return refuse(place, "cannot make", strerror(errno));
        }
        fd = take(
            rmm__open_in(place->parent, place->name, O_RDONLY | O_DIRECTORY), &why);
        if (fd < 0 && !move_aside(place)) {
            break;
        }
    }
    return fd >= 0 ? fd : refuse(place, "cannot use", why);
}

static int open_given(const place_t *place)
{
    const char *why = "";
    int fd = take(open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), &why);
    return fd >= 0 ? fd : refuse(place, "cannot use", why);
}

int state_dir_open(const state_dir_t *dir, char *reason, size_t reason_bytes)
{
    const char *path = dir->path;
    char above[STATE_DIR_BYTES];
    place_t place = {.path = path, .reason = reason, .reason_bytes = reason_bytes};
    if (dir->is_given) {
        return open_given(&place);
    }
    (void)snprintf(above, sizeof(above), "%s", path);
    char *slash = strrchr(above, '/'); /* every path that was chosen has one */
    *slash = '\0';
    place.name = slash + 1;
    place.parent = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place.parent < 0) {
        return refuse(&place, "cannot reach", strerror(errno));
    }
    int fd = open_place(&place);
    (void)close(place.parent);
    return fd;
}
