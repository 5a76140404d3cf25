/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reading a file costs: open + read + close, and pread at 0 on a descriptor that is
 * kept. Each file is measured in turns with the first one, the yardstick, each of the two
 * first at every other turn: so the machine's moods and cold caches hit both alike.
 * Prints medians and 90th percentiles in microseconds, and the difference of the medians.
 *
 *   bench_read ROUNDS NAME=YARDSTICK NAME=FILE...
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KINDS 2 /* open + read + close, pread */

typedef struct subject {
    const char *name, *path;
    int fd;
    uint64_t *times_ns;
} subject_t;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void die(const char *what, const char *path)
{
    (void)fprintf(stderr, "bench_read: %s %s: %s\n", what, path, strerror(errno));
    exit(EXIT_FAILURE);
}

static uint64_t time_open(const subject_t *subject)
{
    char buffer[4096];
    uint64_t start = now_ns();
    int fd = open(subject->path, O_RDONLY);
    if (fd < 0 || read(fd, buffer, sizeof(buffer)) <= 0) {
        die("cannot read", subject->path);
    }
    (void)close(fd);
    return now_ns() - start;
}

static uint64_t time_pread(const subject_t *subject)
{
    char buffer[4096];
    uint64_t start = now_ns();
    if (pread(subject->fd, buffer, sizeof(buffer), 0) <= 0) {
        die("cannot read", subject->path);
    }
    return now_ns() - start;
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static double at_percent(const uint64_t *sorted, size_t count, size_t percent)
{
    return (double)sorted[count * percent / 100] / 1000.0;
}

static void open_subject(subject_t *subject, char *argument, size_t rounds)
{
    char *equals = strchr(argument, '=');
    if (equals == NULL) {
        die("no NAME= in", argument);
    }
    *equals = '\0';
    subject->name = argument;
    subject->path = equals + 1;
    subject->fd = open(subject->path, O_RDONLY);
    subject->times_ns = calloc(rounds, sizeof(uint64_t));
    if (subject->fd < 0 || subject->times_ns == NULL) {
        die("cannot open", subject->path);
    }
}

static uint64_t time_one(const subject_t *subject, int kind)
{
    return kind == 0 ? time_open(subject) : time_pread(subject);
}

static void compare(subject_t *yardstick, subject_t *subject, size_t rounds)
{
    (void)printf("%-26s", subject->name);
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t round = 0; round < rounds; round++) {
            subject_t *first = round % 2 == 0 ? yardstick : subject;
            subject_t *second = round % 2 == 0 ? subject : yardstick;
            first->times_ns[round] = time_one(first, kind);
            second->times_ns[round] = time_one(second, kind);
        }
        qsort(yardstick->times_ns, rounds, sizeof(uint64_t), by_value);
        qsort(subject->times_ns, rounds, sizeof(uint64_t), by_value);
        double bare = at_percent(yardstick->times_ns, rounds, 50);
        double median = at_percent(subject->times_ns, rounds, 50);
        (void)printf(
            " %8.2f %8.2f %8.2f %+7.2f", bare, median,
            at_percent(subject->times_ns, rounds, 90), median - bare);
    }
    (void)printf("\n");
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    subject_t yardstick, subject;
    size_t rounds = argc > 3 ? strtoull(argv[1], NULL, 10) : 0;
    if (rounds == 0) {
        (void)fprintf(stderr, "usage: bench_read ROUNDS NAME=YARDSTICK NAME=FILE...\n");
        return EXIT_FAILURE;
    }
    open_subject(&yardstick, argv[2], rounds);
    (void)printf(
        "%-26s %35s %35s\n%-26s", "microseconds", "open + read + close", "pread",
        "file");
    for (int kind = 0; kind < KINDS; kind++) {
        (void)printf(" %8s %8s %8s %7s", yardstick.name, "median", "p90", "above");
    }
    (void)printf("\n");
    for (int i = 3; i < argc; i++) {
        open_subject(&subject, argv[i], rounds);
        compare(&yardstick, &subject, rounds);
        (void)close(subject.fd);
        free(subject.times_ns);
    }
    (void)close(yardstick.fd);
    free(yardstick.times_ns);
    return EXIT_SUCCESS;
}
