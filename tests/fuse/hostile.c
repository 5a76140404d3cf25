/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls by which a reader of the tree would hold on to something of the kernel's that
 * other readers, or the daemon, need:
 *
 *   rmmfs_hostile aio COUNT FILE    that many asynchronous reads of FILE
 *   rmmfs_hostile list MEMORY DIR   lists DIR into memory that is mapped from the file MEMORY
 *
 * Says "ok" when the calls are made, or before one that may never return, and then waits; the
 * second one 100 s at most.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_BYTES 4096
#define LONGEST_SECONDS 100 /* a test that fails should end */

__attribute__((noreturn)) static void wait_for_the_end(void)
{
    (void)printf("ok\n");
    (void)fflush(stdout);
    for (;;) {
        (void)pause();
    }
}

static int submit_one(aio_context_t context, int fd)
{
    struct iocb *block = calloc(1, sizeof(*block));
    void *buffer = NULL;
    if (block == NULL || posix_memalign(&buffer, READ_BYTES, READ_BYTES) != 0) {
        return 1;
    }
    block->aio_fildes = (uint32_t)fd;
    block->aio_lio_opcode = IOCB_CMD_PREAD;
    block->aio_buf = (uint64_t)(uintptr_t)buffer;
    block->aio_nbytes = READ_BYTES;
    return syscall(SYS_io_submit, context, 1L, &block) == 1 ? 0 : 1;
}

/* By a process each, that end with this one: where reads are not asynchronous io_submit(2)
 * waits. */
static int read_asynchronously(long count, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0) {
        return 1;
    }
    for (long i = 0; i < count; i++) {
        aio_context_t context = 0;
        if (fork() == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            bool failed = syscall(SYS_io_setup, 1L, &context) != 0 ||
                          submit_one(context, fd) != 0;
            if (failed) {
                return 1;
            }
            wait_for_the_end();
        }
    }
    wait_for_the_end();
}

static int list_into(const char *memory_path, const char *dir_path)
{
    int memory_fd = open(memory_path, O_RDWR | O_CLOEXEC);
    int dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat status;
    /* Without its size a page would be beyond the end of the file. */
    if (fstat(memory_fd, &status) != 0) {
        return 1;
    }
    void *memory =
        mmap(NULL, READ_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
    if (memory == MAP_FAILED || dir_fd < 0) {
        return 1;
    }
    (void)printf("ok\n");
    (void)fflush(stdout);
    (void)alarm(LONGEST_SECONDS);
    if (syscall(SYS_getdents64, dir_fd, memory, READ_BYTES) < 0) {
        perror("getdents64");
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "aio") == 0) {
        return read_asynchronously(strtol(argv[2], NULL, 10), argv[3]);
    }
    if (argc == 4 && strcmp(argv[1], "list") == 0) {
        return list_into(argv[2], argv[3]);
    }
    return 2;
}
