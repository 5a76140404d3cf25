/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule for every options struct: struct_size first, zero in a field means its
 * default, NULL means all defaults.
 */
#ifndef RMM_CORE_OPTIONS_H
#define RMM_CORE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <rmm/status.h>

/*
 * Copy a caller's options of another library version into ours, with the rule of
 * openat2(2): a shorter struct is zero-extended; a longer one is accepted only if
 * everything past what we know is zero, because a non-zero byte there is a request that
 * we would otherwise ignore in silence. NULL gives zeros. The copy's struct_size means nothing.
 *
 * min_size is the size of the struct in its first release.
 */
rmm_status_t
rmm__options_copy(void *dst, size_t dst_size, const void *src, size_t min_size);

#endif /* RMM_CORE_OPTIONS_H */
