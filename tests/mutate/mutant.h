/* SPDX-License-Identifier: Apache-2.0 */
/* Switches on one mutant of a build that contains many: tests/mutate includes this file in each
 * source that it changes. RMM_MUTANT is the number of the mutant. RMM_MUTANT_RECORD is a file with
 * a byte for each number: the byte becomes 1 when the program reaches that mutant.
 *
 * This file precedes the source's own includes. So it includes nothing, and declares the functions
 * of libc under names of its own. The environment is read before main(), where no thread can change
 * it. */
#ifndef RMM_TESTS_MUTANT_H
#define RMM_TESTS_MUTANT_H

#ifdef __cplusplus
extern "C" {
#endif
extern char *rmm__mutant_getenv(const char *name) __asm__("getenv");
extern int rmm__mutant_atoi(const char *text) __asm__("atoi");
extern int rmm__mutant_open(const char *path, int flags, ...) __asm__("open");
extern long rmm__mutant_seek(int fd, long offset, int whence) __asm__("lseek");
extern int rmm__mutant_close(int fd) __asm__("close");
extern void *rmm__mutant_map(
    void *where, unsigned long bytes, int protection, int flags, int fd,
    long offset) __asm__("mmap");
#ifdef __cplusplus
}
#endif

static int rmm__mutant_chosen;
static long rmm__mutant_count;
static volatile unsigned char *rmm__mutant_reached;

static void rmm__mutant_record(const char *path)
{
    int fd = rmm__mutant_open(path, 02 /* O_RDWR */);
    void *bytes;

    if (fd < 0) {
        return;
    }
    rmm__mutant_count = rmm__mutant_seek(fd, 0, 2 /* SEEK_END */);
    bytes = rmm__mutant_map(
        0, (unsigned long)rmm__mutant_count, 3 /* read, write */, 1 /* shared */, fd,
        0);
    (void)rmm__mutant_close(fd);
    if (bytes != (void *)-1) {
        rmm__mutant_reached = (volatile unsigned char *)bytes;
    }
}

__attribute__((constructor(101))) static void rmm__mutant_begin(void)
{
    const char *number = rmm__mutant_getenv("RMM_MUTANT");
    const char *path = rmm__mutant_getenv("RMM_MUTANT_RECORD");

    if (number != 0) {
        rmm__mutant_chosen = rmm__mutant_atoi(number);
    }
    if (path != 0) {
        rmm__mutant_record(path);
    }
}

static inline int rmm__mutant(int number)
{
    if (rmm__mutant_reached != 0 && number < rmm__mutant_count) {
        rmm__mutant_reached[number] = 1;
    }
    return number == rmm__mutant_chosen;
}

#endif
