/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/nvtx/ranges.hpp
 *
 * RMM's names for ranges of NVTX, which do nothing: the library makes a range of each of its own
 * calls if it was built with RMM_NVTX.
 */
#ifndef RMM_COMPAT_DETAIL_NVTX_RANGES_HPP
#define RMM_COMPAT_DETAIL_NVTX_RANGES_HPP

#include <rmm/detail/export.hpp>

namespace RMM_NAMESPACE
{

struct librmm_domain {
    static constexpr const char *name = "librmm";
};

class scoped_range
{
  public:
    template <class... Attributes> explicit scoped_range(const Attributes &...) noexcept
    {
    }
    ~scoped_range() noexcept
    { /* there, so that an unused one is no warning */
    }
    scoped_range(const scoped_range &) = delete;
    scoped_range &operator=(const scoped_range &) = delete;
};

} /* namespace RMM_NAMESPACE */

#define RMM_FUNC_RANGE() ((void)0)

#endif /* RMM_COMPAT_DETAIL_NVTX_RANGES_HPP */
