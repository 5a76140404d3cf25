/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as users write it, linked with the shared library: allocates from a pool,
 * launches, and prints what the diagnosis must say, one line a live block:
 *   ADDRESS BYTES FIRST_KERNEL LAST_KERNEL LAUNCHES
 */
#include <inttypes.h>
#include <stdio.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

static void kernel(const void *const *params)
{
    (void)params;
}

static int launch(const char *name, void *a, void *b)
{
    const void *params[] = {&a, &b};
    const size_t bytes[] = {sizeof(a), sizeof(b)};

    return rmm_sim_launch(name, kernel, RMM_STREAM_LEGACY, params, bytes, 2);
}

static void expect(const void *block, size_t bytes, const char *kernels, int launches)
{
    printf("%" PRIuPTR " %zu %s %d\n", (uintptr_t)block, bytes, kernels, launches);
}

int main(void)
{
    rmm_resource_t *cuda = NULL, *pool = NULL;
    void *input = NULL, *output = NULL, *idle = NULL;

    if (rmm_cuda_resource_create(&cuda) != RMM_OK ||
        rmm_pool_resource_create(cuda, NULL, &pool) != RMM_OK ||
        rmm_resource_alloc(pool, 1000, 0, RMM_STREAM_DEFAULT, &input) != RMM_OK ||
        rmm_resource_alloc(pool, 70000, 0, RMM_STREAM_DEFAULT, &output) != RMM_OK ||
        rmm_resource_alloc(pool, 1, 0, RMM_STREAM_DEFAULT, &idle) != RMM_OK) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
        return 1;
    }
    for (int i = 0; i < 5; i++) {
        launch("fill", input, NULL);
        launch("scale", (char *)input + 999, (char *)output + 69999);
    }
    launch("sum", output, output);
    expect(input, 1000, "fill scale", 10);
    expect(output, 70000, "scale sum", 6);
    expect(idle, 1, "none none", 0);
    return 0; /* with the blocks: a block freed has no row */
}
