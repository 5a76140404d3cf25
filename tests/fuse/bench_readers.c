/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long many readers wait that read one file whole at the same moment. In each round all
 * processes begin at once; between two rounds there is a pause, so that no round gets a text of
 * the round before.
 *
 *   bench_readers READERS ROUNDS FILE     prints: p50 and p99 in ms, and how many were refused
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS UINT64_C(1500000000)
#define REFUSED UINT64_MAX

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t when_ns)
{
    const struct timespec when = {
        .tv_sec = (time_t)(when_ns / 1000000000u),
        .tv_nsec = (long)(when_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0) {
    }
}

/* REFUSED: an error, or an empty text. */
static uint64_t time_whole(const char *path)
{
    static char buffer[128 * 1024];
    uint64_t begin = now_ns();
    size_t length = 0;
    ssize_t got = -1;
    int fd = open(path, O_RDONLY);
    while (fd >= 0 && (got = read(fd, buffer, sizeof(buffer))) > 0) {
        length += (size_t)got;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return got == 0 && length > 0 ? now_ns() - begin : REFUSED;
}

static void
read_rounds(const char *path, uint64_t begin_ns, uint32_t rounds, uint64_t *times_ns)
{
    for (uint32_t i = 0; i < rounds; i++) {
        sleep_until(begin_ns + i * PAUSE_NS);
        times_ns[i] = time_whole(path);
    }
}

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void print(uint64_t *times_ns, size_t count)
{
    size_t good = 0;
    qsort(times_ns, count, sizeof(times_ns[0]), by_size);
    while (good < count && times_ns[good] != REFUSED) {
        good++;
    }
    if (good > 0) {
        (void)printf(
            "p50 %.1f ms, p99 %.1f ms, ", (double)times_ns[good / 2] / 1e6,
            (double)times_ns[(good - 1) * 99 / 100] / 1e6);
    }
    (void)printf("%zu of %zu refused\n", count - good, count);
}

int main(int argc, char **argv)
{
    uint32_t readers = argc == 4 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    uint32_t rounds = argc == 4 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    size_t count = (size_t)readers * rounds;
    if (count == 0) {
        (void)fprintf(stderr, "usage: bench_readers READERS ROUNDS FILE\n");
        return 2;
    }
    uint64_t *times_ns = mmap(
        NULL, count * sizeof(*times_ns), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (times_ns == MAP_FAILED) {
        perror("bench_readers: mmap");
        return 1;
    }
    uint64_t begin_ns = now_ns() + PAUSE_NS;
    for (uint32_t i = 0; i < readers; i++) {
        pid_t child = fork();
        if (child == 0) {
            read_rounds(argv[3], begin_ns, rounds, times_ns + (size_t)i * rounds);
            _exit(0);
        }
        if (child < 0) {
            perror("bench_readers: fork");
            return 1;
        }
    }
    while (wait(NULL) > 0) {
    }
    print(times_ns, count);
    return 0;
}
