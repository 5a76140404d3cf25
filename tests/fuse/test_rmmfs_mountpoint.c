/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of the mount point, while another daemon's mount comes and goes there.
 */
#include "harness/in_child.h"
#include "harness/tmpfs.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "daemon/mountpoint.h"

#define NAMES 20000

typedef struct changes {
    const char *path;
    atomic_bool is_over;
} changes_t;

static void *mount_and_detach(void *arg)
{
    changes_t *changes = arg;
    while (!atomic_load(&changes->is_over)) {
        CHECK(mount("none", changes->path, "tmpfs", 0, NULL) == 0);
        CHECK(umount2(changes->path, MNT_DETACH) == 0);
    }
    return NULL;
}

static void name_while_it_changes(const char *path)
{
    changes_t changes = {.path = path};
    char name[PATH_MAX], reason[256] = "";
    pthread_t thread;
    mount_tmpfs(path, 0, NULL); /* in a mount namespace of its own */
    CHECK(pthread_create(&thread, NULL, mount_and_detach, &changes) == 0);
    for (int i = 0; i < NAMES; i++) {
        CHECK(mountpoint_name(path, name, reason, sizeof(reason)));
        CHECK(strcmp(name, path) == 0);
    }
    atomic_store(&changes.is_over, true);
    CHECK(pthread_join(thread, NULL) == 0);
    _exit(0);
}

/* Before, it was "/" if the mount was detached between two system calls. */
TEST_CASE(a_mount_that_is_detached_meanwhile_keeps_its_name)
{
    runtime_t runtime;
    tmpfs_or_skip();
    runtime_open(&runtime);
    pid_t child = fork_child();
    if (child == 0) {
        name_while_it_changes(runtime.path);
    }
    assert_int_equal(exit_status_of(child), 0);
    runtime_close(&runtime);
}
