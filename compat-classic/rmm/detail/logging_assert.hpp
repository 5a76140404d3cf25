/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/logging_assert.hpp
 *
 * RMM_LOGGING_ASSERT(condition): an assertion that logs first. Nothing with NDEBUG.
 */
#ifndef RMM_COMPAT_DETAIL_LOGGING_ASSERT_HPP
#define RMM_COMPAT_DETAIL_LOGGING_ASSERT_HPP

#ifdef NDEBUG
#define RMM_LOGGING_ASSERT(condition) ((void)0)
#else

#include <cassert>

#include <rmm/detail/error.hpp>
#include <rmm/logger.hpp>

#define RMM_LOGGING_ASSERT(condition)                                                  \
    do {                                                                               \
        const bool rmm_compat_holds = static_cast<bool>(condition);                    \
        if (!rmm_compat_holds) {                                                       \
            RMM_LOG_CRITICAL("[" __FILE__ ":" RMM_STRINGIFY(                           \
                __LINE__) "] assertion " #condition " failed");                        \
            rmm::default_logger().flush();                                             \
            assert(rmm_compat_holds);                                                  \
        }                                                                              \
    } while (0)

#endif

#endif /* RMM_COMPAT_DETAIL_LOGGING_ASSERT_HPP */
