/* SPDX-License-Identifier: Apache-2.0 */
/* Hands readings of a tree from a thread to the screen; see mount.h. */
#include "top/mount.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"

#define OPEN_WAIT_NS UINT64_C(4000000000) /* a live daemon needs milliseconds */

/* --- the thread --------------------------------------------------------------------------- */

static void *read_when_asked(void *arg)
{
    mount_t *mount = arg;
    pthread_mutex_lock(&mount->lock);
    while (!mount->is_ending) {
        if (mount->state != MOUNT_READING) {
            pthread_cond_wait(&mount->changed, &mount->lock);
            continue;
        }
        pthread_mutex_unlock(&mount->lock);
        mount_read(&mount->reading);
        pthread_mutex_lock(&mount->lock);
        mount->state = MOUNT_READY;
        pthread_cond_broadcast(&mount->changed);
    }
    pthread_mutex_unlock(&mount->lock);
    return NULL;
}

/* Signals are for the thread that waits for keys. */
static bool start_thread(mount_t *mount)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&mount->thread, NULL, read_when_asked, mount);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    mount->is_started = error == 0;
    errno = error;
    return mount->is_started;
}

static void init_lock(mount_t *mount)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&mount->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&mount->lock, NULL);
}

/* --- for the screen ----------------------------------------------------------------------- */

bool mount_open(mount_t *mount, const char *path, char *message, size_t message_bytes)
{
    node_t node;
    memset(mount, 0, sizeof(*mount));
    if (strlen(path) >= MOUNT_PATH_BYTES) {
        snprintf(message, message_bytes, "the name of the mount is too long");
        return false;
    }
    init_lock(mount);
    if (!mount_read_init(&mount->reading, path) || !start_thread(mount)) {
        snprintf(message, message_bytes, "cannot start a reader: %s", strerror(errno));
        mount_close(mount);
        return false;
    }
    node_init(&node);
    bool is_whole = mount_take(mount, &node, OPEN_WAIT_NS);
    node_fini(&node);
    if (!is_whole || mount->reason[0] != '\0') {
        snprintf(
            message, message_bytes, "cannot read %.150s: %s", path,
            is_whole ? mount->reason : "no host memory");
        mount_close(mount);
        return false;
    }
    return true;
}

void mount_close(mount_t *mount)
{
    pthread_mutex_lock(&mount->lock);
    mount->is_ending = true;
    pthread_cond_broadcast(&mount->changed);
    pthread_mutex_unlock(&mount->lock);
    if (mount->is_started) {
        mount_read_stop(&mount->reading);
        pthread_join(mount->thread, NULL);
    }
    mount_read_fini(&mount->reading);
    pthread_cond_destroy(&mount->changed);
    pthread_mutex_destroy(&mount->lock);
}

static void wait_until_ready_locked(mount_t *mount, uint64_t until_ns)
{
    const struct timespec until = {
        .tv_sec = (time_t)(until_ns / 1000000000u),
        .tv_nsec = (long)(until_ns % 1000000000u)};
    int error = 0;
    while (mount->state == MOUNT_READING && error == 0) {
        error = pthread_cond_timedwait(&mount->changed, &mount->lock, &until);
    }
}

/* The reading is this thread's. */
static void take_locked(mount_t *mount, node_t *node)
{
    mount_reading_t *reading = &mount->reading;
    mount->state = MOUNT_IDLE;
    memcpy(mount->reason, reading->reason, sizeof(mount->reason));
    if (reading->reason[0] == '\0' && reading->has_memory) {
        const node_t old = *node;
        *node = reading->node;
        reading->node = old;
        mount->answered_ns = node->time_ns;
    }
}

bool mount_take(mount_t *mount, node_t *node, uint64_t wait_ns)
{
    bool has_memory = true;
    pthread_mutex_lock(&mount->lock);
    if (mount->state == MOUNT_IDLE) { /* else an answer is late, or is there by now */
        mount->state = MOUNT_READING;
        pthread_cond_broadcast(&mount->changed);
    }
    wait_until_ready_locked(mount, clock_ns() + wait_ns);
    if (mount->state == MOUNT_READY) {
        take_locked(mount, node);
        has_memory = mount->reading.has_memory;
    } else {
        snprintf(mount->reason, sizeof(mount->reason), "rmmfs does not answer");
    }
    pthread_mutex_unlock(&mount->lock);
    return has_memory;
}
