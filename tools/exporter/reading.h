/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a file of the tree in a process of its own.
 *
 * A daemon that hangs blocks its readers, and a reader whose request the daemon has already taken
 * cannot even be killed: the kernel waits for the answer. A process with such a thread does not
 * end, and its sockets stay open. So the process that serves never touches the mount. A child opens
 * and reads the file into memory that both share; it has nothing else open. A child that takes too
 * long is killed and forgotten: it ends now, or when the daemon answers or its mount is gone. At
 * most READING_LEFT_MAX are left behind; while there are so many, no further one starts.
 *
 * Cost: a fork and an exit, 0.3 ms, beside the read itself.
 */
#ifndef RMM_EXPORTER_READING_H
#define RMM_EXPORTER_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define READING_LEFT_MAX 4
#define READING_PARALLEL_MAX 5                 /* as many as there are documents */
#define READING_BYTES_MAX ((uint64_t)64 << 20) /* rmmfs makes at most 24 MiB */

/* Those that were killed, and have not ended. */
typedef struct readings_left {
    pid_t pids[READING_LEFT_MAX + READING_PARALLEL_MAX];
    size_t count;
} readings_left_t;

typedef struct reading {
    pid_t pid;   /* 0: none is under way */
    int text_fd; /* of memory; -1 */
    uint64_t until_ns;
} reading_t;

typedef enum reading_state {
    READING_UNDER_WAY,
    READING_DONE,
    READING_FAILED
} reading_state_t;

/* Start to read the file at `path` into memory that begins with `head`. False with errno. */
bool reading_start(
    reading_t *reading, const char *path, const char *head, uint64_t timeout_ns);

/* Look how far it is, without waiting. READING_FAILED with errno; ETIMEDOUT: it took too long. */
reading_state_t reading_look(reading_t *reading, readings_left_t *left);

/* Give it up, as after its time. */
void reading_abandon(reading_t *reading, readings_left_t *left);

/* The text of one that is done; the caller closes it. */
int reading_take(reading_t *reading, uint64_t *bytes_out);

/* Forget those that have ended since. False: there are so many that no further one may start. */
bool readings_left_look(readings_left_t *left);

#endif /* RMM_EXPORTER_READING_H */
