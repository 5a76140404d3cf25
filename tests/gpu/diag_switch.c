/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modes of the diagnosis switched while CUPTI is in use on a real GPU, and the stack of what it
 * found. The program writes the word that the daemon would write. Run it under rmm-run:
 *
 *   rmm-run --diag off -- diag_switch
 *
 * What is written too far lies in memory of the pool that nobody uses. Output and exit status
 * are those of diag_usage.
 */
#include <inttypes.h>
#include <string.h>

#include <cuda_runtime.h>

#include <rmm/rmm.h>

#include "diag/modes.h"
#include "gpu/diagnosed.h"

enum { BYTES = 4096 };

static char *block;

static void fill(size_t more)
{
    if (cudaMemset(block, 0, BYTES + more) != cudaSuccess) {
        give_up("a fill");
    }
}

/* As the daemon does. */
static void want(uint32_t modes)
{
    const uint32_t wanted = modes | RMM_DIAG_MODES_SET;
    char path[512];
    int fd = diag_file_find(directory, path) ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (fd < 0 || pwrite(
                      fd, &wanted, sizeof(wanted),
                      offsetof(rmm_diag_header_t, modes_wanted)) != sizeof(wanted)) {
        give_up("the side file can be written");
    }
    (void)close(fd);
}

/* An allocation applies a request, where no callback is enabled that could. */
static void allocate(rmm_resource_t *pool)
{
    void *other = NULL;

    if (rmm_resource_alloc(pool, 100, 0, RMM_STREAM_DEFAULT, &other) != RMM_OK) {
        give_up(rmm_last_error_message());
    }
}

static void expect(const char *what, uint64_t findings, uint64_t fills)
{
    diag_file_t file;

    read_file(&file);
    check(
        file.header->findings_total == findings && file.header->fills == fills, what,
        "%" PRIu64 " findings, %" PRIu64 " fills", file.header->findings_total,
        file.header->fills);
    diag_file_close(&file);
}

static void expect_stack(void)
{
    const rmm_diag_stack_t *stack = NULL;
    diag_file_t file;

    read_file(&file);
    stack = (const void *)((const char *)file.header + file.header->stacks.offset);
    check(
        stack->frame_count >= 2 && file.header->modules.used >= 1,
        "a finding has a stack", "%u frames", stack->frame_count);
    diag_file_close(&file);
}

int main(void)
{
    rmm_resource_t *pool = NULL;
    int gpus = 0;

    diagnosed_begin("diag_switch", cudaGetDeviceCount(&gpus) == cudaSuccess ? gpus : 0);
    if (rmm_resource_create_from_spec("pool:64MiB", &pool) != RMM_OK ||
        rmm_resource_alloc(pool, BYTES, 0, RMM_STREAM_DEFAULT, (void **)&block) !=
            RMM_OK) {
        give_up("a pool and a block");
    }
    fill(1);
    expect("off finds nothing", 0, 0);
    want(RMM_DIAG_MODE_BOUNDS);
    allocate(pool);
    fill(1);
    expect("bounds, switched on, knows a block from before", 1, 0);
    expect_stack();
    want(RMM_DIAG_MODE_USAGE);
    fill(1); /* applies it itself */
    expect("usage instead of bounds", 1, 1);
    want(0);
    fill(1);
    fill(1);
    expect("off again", 1, 1);
    return diagnosed_end();
}
