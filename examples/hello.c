/* SPDX-License-Identifier: Apache-2.0 */
#include <rmm/rmm.h>
#include <stdio.h>

int main(void)
{
    rmm_resource_t *cuda, *pool;
    unsigned char last = 0;
    void *block;
    if (rmm_cuda_resource_create(&cuda) ||
        rmm_pool_resource_create(cuda, NULL, &pool) ||
        rmm_resource_alloc(pool, 1000000, 0, RMM_STREAM_DEFAULT, &block) ||
        rmm_memset_async(block, 42, 1000000, RMM_STREAM_DEFAULT) ||
        rmm_memcpy_async(&last, (char *)block + 999999, 1, RMM_STREAM_DEFAULT) ||
        rmm_stream_synchronize(RMM_STREAM_DEFAULT)) {
        return fprintf(stderr, "%s\n", rmm_last_error_message()), 1;
    }
    printf("1000000 bytes of %d at %p; press Enter to free them\n", last, block);
    getchar();
    rmm_resource_dealloc(pool, block, 1000000, 0, RMM_STREAM_DEFAULT);
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
    return 0;
}
