/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/process_is_exiting.hpp
 *
 * Has the process begun to exit? The library itself needs no such question: its objects may
 * end after main(). The answer is for destructors of programs that call CUDA.
 */
#ifndef RMM_COMPAT_PROCESS_IS_EXITING_HPP
#define RMM_COMPAT_PROCESS_IS_EXITING_HPP

#include <atomic>
#include <cstdlib>

#include <rmm/detail/export.hpp>

namespace RMM_NAMESPACE
{
namespace detail
{

RMM_EXPORT inline std::atomic<bool> is_exiting{false};

/* The first call decides: exit handlers that were registered before it see true. */
RMM_EXPORT inline void watch_for_exit()
{
    static const int registered =
        std::atexit([] { is_exiting.store(true, std::memory_order_relaxed); });
    (void)registered;
}

} /* namespace detail */

/** True in exit handlers that were registered before the first use of a default resource. */
inline bool process_is_exiting() noexcept
{
    return detail::is_exiting.load(std::memory_order_relaxed);
}

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_PROCESS_IS_EXITING_HPP */
