/* SPDX-License-Identifier: Apache-2.0 */
#include "core/options.h"

#include <string.h>

#include "core/error.h"

static bool tail_is_zero(const unsigned char *bytes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

rmm_status_t
rmm__options_copy(void *dst, size_t dst_size, const void *src, size_t min_size)
{
    size_t src_size;

    memset(dst, 0, dst_size);
    if (src == NULL) {
        return RMM_OK;
    }

    memcpy(&src_size, src, sizeof(src_size)); /* struct_size is always first */
    if (src_size < min_size) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "options struct_size %zu is too small: initialise with RMM_*_OPTIONS_INIT",
            src_size);
    }
    if (!tail_is_zero(src, dst_size, src_size)) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "options of a newer version set fields that this library does not know");
    }
    memcpy(dst, src, src_size < dst_size ? src_size : dst_size);
    return RMM_OK;
}
