/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three strengths of checks:
 *   RMM_ASSERT        cannot happen; debug builds only
 *   RMM_ASSERT_HEAVY  walks a structure; only with RMM_HEAVY_CHECKS
 *   RMM_CHECK_ARG     a caller's mistake: sets the last error and returns
 */
#ifndef RMM_CORE_ASSERT_H
#define RMM_CORE_ASSERT_H

#include <assert.h>

#include "core/error.h"

#define RMM_ASSERT(condition) assert(condition)

#ifdef RMM_HEAVY_CHECKS
#define RMM_ASSERT_HEAVY(condition) assert(condition)
#else
#define RMM_ASSERT_HEAVY(condition) ((void)0)
#endif

#define RMM_CHECK(status, condition, sentence)                                         \
    do {                                                                               \
        if (!(condition)) {                                                            \
            return rmm__error_check((status), __func__, sentence);                     \
        }                                                                              \
    } while (0)
#define RMM_CHECK_ARG(condition, sentence)                                             \
    RMM_CHECK(RMM_ERR_INVALID_ARGUMENT, condition, sentence)
#define RMM_CHECK_ALIGN(condition, sentence)                                           \
    RMM_CHECK(RMM_ERR_INVALID_ALIGNMENT, condition, sentence)

#define RMM_COLD __attribute__((cold, noinline))
/* Part of the hot path: a call would save and restore registers for nothing. */
#define RMM_HOT_INLINE static inline __attribute__((always_inline))

#endif /* RMM_CORE_ASSERT_H */
