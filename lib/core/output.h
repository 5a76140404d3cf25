/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the library writes: the debug log, allocation logs, reports and dumps, and what the
 * simulated GPU prints. None of it may end, stop or slow the program. So a write here
 *  - raises neither SIGPIPE (a pipe without a reader) nor SIGXFSZ (RLIMIT_FSIZE);
 *  - waits at most RMM_OUTPUT_PATIENCE_MS for the reader of a pipe, a terminal or a socket, and
 *    not again until that reader has made room;
 *  - appends whole lines where the end of a file's room is known;
 *  - goes on after a signal (EINTR), and is no cancellation point.
 * The caller counts what it could not write, and reports that once.
 *
 * An output is a file that the library opens by its name. Before each write it is checked that
 *  - its descriptor still is that file: a program that becomes a daemon closes all descriptors,
 *    and its next file may get the number;
 *  - its name still is that file: logrotate renames it. Then the file of that name is opened.
 * A name is the same file wherever the program's working directory moves.
 *
 * Locking: an output has none, its owner has.
 */
#ifndef RMM_CORE_OUTPUT_H
#define RMM_CORE_OUTPUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RMM_OUTPUT_PATIENCE_MS 100

typedef struct rmm_output {
    char *
        path; /* absolute; NULL: none is known any more, so it cannot be opened again */
    int fd;   /* -1: not open now */
    dev_t device;
    ino_t inode;
    bool may_rotate;     /* a file that may get another name */
    bool is_cut;         /* ends in the middle of a line of ours */
    atomic_bool stalled; /* its reader did not read */
} rmm_output_t;

#define RMM_OUTPUT_NONE                                                                \
    {                                                                                  \
        .fd = -1                                                                       \
    }

/*
 * Opens a file to append to, made with mode 0644 if it is missing. 0 or an errno. ENXIO: a FIFO
 * that nobody reads yet; the output is there, and renew() tries again. After another error there
 * is nothing to close.
 */
int rmm__output_open(rmm_output_t *self, const char *path);

/* See above. 0, with *is_fresh_out: another file than before is open; or an errno: none is. */
int rmm__output_renew(rmm_output_t *self, bool *is_fresh_out);

/* Returns how much of it was written: all, or errno says why not. */
size_t rmm__output_write(rmm_output_t *self, const char *lines, size_t length);

void rmm__output_close(rmm_output_t *self);

/* The same for a descriptor of somebody else's. `stalled`: remembers that
 * its reader does not read; NULL: it is waited for each time. */
size_t rmm__output_put(int fd, const char *lines, size_t length, atomic_bool *stalled);

/*
 * The same to standard error. Its number may be another file's: if it was closed when the library
 * was loaded, or is closed on exec, which no standard error is. Then EBADF.
 */
size_t rmm__output_put_error(const char *lines, size_t length);

/* A message of the simulated GPU or about the library's settings, to standard error. */
__attribute__((format(printf, 1, 2))) void rmm__output_print(const char *format, ...);

#endif /* RMM_CORE_OUTPUT_H */
