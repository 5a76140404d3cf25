/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills of the program: those of the containers, with arguments checked. */
#include <rmm/memory.h>

#include "containers/transfer.h"
#include "core/assert.h"

static rmm_status_t check_copy(const void *dst, const void *src, size_t bytes)
{
    RMM_CHECK_ARG(dst != NULL || bytes == 0, "dst is NULL");
    RMM_CHECK_ARG(src != NULL || bytes == 0, "src is NULL");
    return RMM_OK;
}

rmm_status_t
rmm_memcpy_async(void *dst, const void *src, size_t bytes, rmm_stream_t stream)
{
    rmm_status_t status = check_copy(dst, src, bytes);

    return status == RMM_OK ? rmm__copy_async(dst, src, bytes, stream) : status;
}

rmm_status_t rmm_memcpy(void *dst, const void *src, size_t bytes, rmm_stream_t stream)
{
    rmm_status_t status = check_copy(dst, src, bytes);

    return status == RMM_OK ? rmm__copy(dst, src, bytes, stream) : status;
}

rmm_status_t rmm_memset_async(void *ptr, int value, size_t bytes, rmm_stream_t stream)
{
    RMM_CHECK_ARG(ptr != NULL || bytes == 0, "ptr is NULL");
    return rmm__fill_async(ptr, value, bytes, stream);
}
