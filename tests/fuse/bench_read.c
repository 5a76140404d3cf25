/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reading a file costs: open + read + close, and pread at 0 on a descriptor that is
 * kept. All files are measured in turns, so that what else happens on the machine hits
 * them alike. Prints median and 90th percentile in microseconds, and how much each file's
 * median is above the first one's.
 *
 *   bench_read ROUNDS NAME=FILE...
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

#define FILES_MAX 16

typedef struct subject {
    const char *name, *path;
    int fd;
    uint64_t *open_ns, *pread_ns;
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
    subject->open_ns = calloc(rounds, sizeof(uint64_t));
    subject->pread_ns = calloc(rounds, sizeof(uint64_t));
    if (subject->fd < 0 || subject->open_ns == NULL || subject->pread_ns == NULL) {
        die("cannot open", subject->path);
    }
}

static void report(const subject_t *subjects, size_t count, size_t rounds)
{
    double first[2] = {0, 0};
    (void)printf(
        "%-28s %28s %28s\n%-28s %8s %8s %10s %8s %8s %10s\n", "", "open+read+close, us",
        "pread, us", "file", "median", "p90", "above", "median", "p90", "above");
    for (size_t i = 0; i < count; i++) {
        uint64_t *times[2] = {subjects[i].open_ns, subjects[i].pread_ns};
        (void)printf("%-28s", subjects[i].name);
        for (int kind = 0; kind < 2; kind++) {
            qsort(times[kind], rounds, sizeof(uint64_t), by_value);
            double median = at_percent(times[kind], rounds, 50);
            first[kind] = i == 0 ? median : first[kind];
            (void)printf(
                " %8.2f %8.2f %+10.2f", median, at_percent(times[kind], rounds, 90),
                median - first[kind]);
        }
        (void)printf("\n");
    }
}

int main(int argc, char **argv)
{
    subject_t subjects[FILES_MAX];
    size_t rounds = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
    size_t count = argc > 2 ? (size_t)argc - 2 : 0;
    if (rounds == 0 || count > FILES_MAX) {
        (void)fprintf(stderr, "usage: bench_read ROUNDS NAME=FILE...\n");
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < count; i++) {
        open_subject(&subjects[i], argv[i + 2], rounds);
    }
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            subjects[i].open_ns[round] = time_open(&subjects[i]);
        }
        for (size_t i = 0; i < count; i++) {
            subjects[i].pread_ns[round] = time_pread(&subjects[i]);
        }
    }
    report(subjects, count, rounds);
    return EXIT_SUCCESS;
}
