/* SPDX-License-Identifier: Apache-2.0 */
#include <rmm/rmm.h>
#include <stdio.h>

int main(void)
{
    rmm_resource_t *cuda, *pool;
    void *block;
    if (rmm_cuda_resource_create(&cuda) ||
        rmm_pool_resource_create(cuda, NULL, &pool) ||
        rmm_resource_alloc(pool, 1000000, 0, RMM_STREAM_DEFAULT, &block)) {
        return fprintf(stderr, "%s\n", rmm_last_error_message()), 1;
    }
    printf("1000000 bytes at %p; press Enter to free them\n", block);
    getchar();
    rmm_resource_dealloc(pool, block, 1000000, 0, RMM_STREAM_DEFAULT);
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
    return 0;
}
