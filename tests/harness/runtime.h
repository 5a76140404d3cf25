/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of what a process publishes: a private runtime directory, and child processes
 * that do one thing each, because a process makes its segment once.
 *
 * A child reports with CHECK(), which prints and ends it; cmocka's asserts stay in the
 * test's own process.
 */
#ifndef RMM_TESTS_HARNESS_RUNTIME_H
#define RMM_TESTS_HARNESS_RUNTIME_H

#include "harness/harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "segment/segment_name.h"
#include "segment/segment_reader.h"

typedef struct runtime {
    char path[128];
    int fd;
} runtime_t;

/* Make it, and make it this process's and its children's place. */
static inline void runtime_open(runtime_t *runtime)
{
    const char *parent = getenv("TMPDIR");

    snprintf(
        runtime->path, sizeof(runtime->path), "%.64s/rmm-test.XXXXXX",
        parent != NULL ? parent : "/tmp");
    assert_non_null(mkdtemp(runtime->path));
    runtime->fd = open(runtime->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(runtime->fd >= 0);
    assert_int_equal(setenv("RMM_RUNTIME_DIR", runtime->path, 1), 0);
}

/* A new file there with these bytes; the caller closes it. */
static inline int runtime_put_file(
    const runtime_t *runtime, const char *name, const void *bytes, size_t size)
{
    int fd = openat(runtime->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    return fd;
}

/* Number of entries whose kind is `kind`; the first's name to name_out (may be NULL). */
static inline int
runtime_count(const runtime_t *runtime, rmm_file_kind_t kind, char *name_out)
{
    DIR *directory = opendir(runtime->path);
    struct dirent *entry;
    int count = 0;

    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] == '.' &&
            (entry->d_name[1] == '\0' || entry->d_name[1] == '.')) {
            continue;
        }
        if (rmm__file_name_parse(entry->d_name).kind == kind) {
            if (count++ == 0 && name_out != NULL) {
                snprintf(name_out, RMM_SEGMENT_NAME_BYTES, "%.63s", entry->d_name);
            }
        }
    }
    closedir(directory);
    return count;
}

static inline void runtime_empty(const runtime_t *runtime)
{
    DIR *directory = opendir(runtime->path);
    struct dirent *entry;

    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            if (unlinkat(runtime->fd, entry->d_name, 0) != 0) {
                (void)unlinkat(runtime->fd, entry->d_name, AT_REMOVEDIR);
            }
        }
    }
    closedir(directory);
}

static inline void runtime_close(runtime_t *runtime)
{
    runtime_empty(runtime);
    close(runtime->fd);
    assert_int_equal(rmdir(runtime->path), 0);
}

/* Group setup and teardown of a program whose cases share one runtime directory. */
static inline int runtime_setup(void **state)
{
    static runtime_t runtime;

    runtime_open(&runtime);
    *state = &runtime;
    return 0;
}

static inline int runtime_teardown(void **state)
{
    runtime_close(*state);
    return 0;
}

/* Open the only segment there is. */
static inline void runtime_segment(const runtime_t *runtime, rmm_segment_t *segment)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    char name[RMM_SEGMENT_NAME_BYTES];

    assert_int_equal(runtime_count(runtime, RMM_FILE_SEGMENT, name), 1);
    if (rmm__segment_open(segment, runtime->fd, name, reason) != RMM_SEGMENT_GOOD) {
        fail_msg("%s: %s", name, reason);
    }
}

/* --- children ----------------------------------------------------------------------- */

#define CHECK(condition)                                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: child: %s\n", __FILE__, __LINE__, #condition);     \
            _exit(1);                                                                  \
        }                                                                              \
    } while (0)

typedef struct child {
    pid_t pid;
    int in, out; /* of the process that holds this struct */
} child_t;

typedef void (*child_fn)(child_t *self, void *argument);

/* This process's ends of its children's pipes: a later child must not hold them open. */
#define CHILDREN_MAX 64
static int child_ends[CHILDREN_MAX][2];

static inline void child_note_ends(int old_in, int old_out, int in, int out)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        if (child_ends[i][0] == old_in && child_ends[i][1] == old_out) {
            child_ends[i][0] = in;
            child_ends[i][1] = out;
            return;
        }
    }
    abort(); /* raise CHILDREN_MAX */
}

static inline void child_close_ends(void)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        if (child_ends[i][0] != 0) {
            close(child_ends[i][0]);
            close(child_ends[i][1]);
            child_ends[i][0] = child_ends[i][1] = 0;
        }
    }
}

/* Either side: the other has come to the same point. */
static inline void child_say(const child_t *child, char word)
{
    ssize_t put = write(child->out, &word, 1);

    (void)put; /* a dead peer shows at the next child_hear() */
}

/* The word said; 0: the other side is gone. */
static inline char child_hear(const child_t *child)
{
    char word = 0;
    ssize_t got;

    do {
        got = read(child->in, &word, 1);
    } while (got < 0 && errno == EINTR);
    return got == 1 ? word : 0;
}

/* Run body in a child, which ends with 0 when it returns. */
static inline void child_start(child_t *child, child_fn body, void *argument)
{
    int down[2], up[2];

    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(down, O_CLOEXEC), 0);
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    fflush(NULL);
    child->pid = fork();
    assert_true(child->pid >= 0);
    if (child->pid == 0) {
        child_t self = {.pid = 0, .in = down[0], .out = up[1]};

        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves no process behind */
        close(down[1]);
        close(up[0]);
        child_close_ends();
        body(&self, argument);
        fflush(NULL);
        _exit(0);
    }
    close(down[0]);
    close(up[1]);
    child->in = up[0];
    child->out = down[1];
    child_note_ends(0, 0, child->in, child->out);
}

/* waitpid's status. */
static inline int child_wait(child_t *child)
{
    int status = -1;

    child_note_ends(child->in, child->out, 0, 0);
    close(child->out);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
    }
    close(child->in);
    return status;
}

static inline int child_kill(child_t *child)
{
    kill(child->pid, SIGKILL);
    return child_wait(child);
}

/* Of this process; a child of it begins with about a dozen. */
static inline unsigned count_descriptors(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

/* Start, and wait until it ends well. */
static inline void child_run(child_fn body, void *argument)
{
    child_t child;

    child_start(&child, body, argument);
    assert_int_equal(child_wait(&child), 0);
}

/* In the child: say how far it is, and wait until the test lets it go on. */
static inline void child_pause(const child_t *self, char word)
{
    child_say(self, word);
    child_hear(self);
}

/* Start, and wait until it pauses with this word. */
static inline void
child_start_until(child_t *child, child_fn body, void *argument, char word)
{
    child_start(child, body, argument);
    assert_int_equal(child_hear(child), word);
}

/* Let a child that pauses go on until it pauses with this word. */
static inline void child_go_on_until(const child_t *child, char word)
{
    child_say(child, 'g');
    assert_int_equal(child_hear(child), word);
}

/* Let a child that pauses go on to its end. */
static inline void child_end(child_t *child)
{
    child_say(child, 'g');
    assert_int_equal(child_wait(child), 0);
}

/* --- figures ------------------------------------------------------------------------ */

static inline uint64_t location_figure(
    const rmm_segment_t *segment, uint32_t location, rmm_location_stat_t stat)
{
    rmm_record_t record;
    uint64_t value;

    assert_true(rmm__segment_read_location(segment, location, &record));
    assert_true(rmm__segment_location_stat(segment, &record, stat, &value));
    return value;
}

static inline uint64_t
slot_figure(const rmm_segment_t *segment, uint32_t slot, rmm_slot_stat_t stat)
{
    rmm_record_t record;
    uint64_t value;

    assert_true(rmm__segment_read_slot(segment, slot, &record, NULL));
    assert_true(rmm__segment_slot_stat(segment, &record, stat, &value));
    return value;
}

/* Of location 0, and of a slot: the figure's name without RMM_LOCATION_STAT_. */
#define assert_location(segment, stat, value)                                          \
    assert_int_equal(location_figure(segment, 0, RMM_LOCATION_STAT_##stat), value)
#define assert_slot(segment, slot, stat, value)                                        \
    assert_int_equal(slot_figure(segment, slot, RMM_SLOT_STAT_##stat), value)

#endif /* RMM_TESTS_HARNESS_RUNTIME_H */
