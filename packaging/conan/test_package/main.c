/* SPDX-License-Identifier: Apache-2.0 */
/* What the Conan package is tried with: one block of a pool on the simulated GPU. */
#include <rmm/rmm.h>
#include <stdio.h>

int main(void)
{
    rmm_resource_t *cuda, *pool;
    void *block;
    if (rmm_cuda_resource_create(&cuda) || rmm_pool_resource_create(cuda, NULL, &pool) ||
        rmm_resource_alloc(pool, 1 << 20, 0, RMM_STREAM_DEFAULT, &block)) {
        return fprintf(stderr, "%s\n", rmm_last_error_message()), 1;
    }
    printf("rmm-c %s\n", rmm_version_string());
    rmm_resource_dealloc(pool, block, 1 << 20, 0, RMM_STREAM_DEFAULT);
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
    return 0;
}
