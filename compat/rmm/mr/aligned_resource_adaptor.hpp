/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/aligned_resource_adaptor.hpp
 *
 * Alignments that the upstream does not support (rmm/aligned_adaptor.h).
 */
#ifndef RMM_COMPAT_MR_ALIGNED_RESOURCE_ADAPTOR_HPP
#define RMM_COMPAT_MR_ALIGNED_RESOURCE_ADAPTOR_HPP

#include <cstddef>
#include <utility>

#include <rmm/aligned.hpp>
#include <rmm/cxx/adaptors.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/library_resource.hpp>
#include <rmm/mr/per_device_resource.hpp> /* for programs: as RMM's */

namespace RMM_NAMESPACE
{
namespace mr
{

RMM_COMPAT_OVER_UPSTREAM
class aligned_resource_adaptor : public detail::adaptor_over_upstream
{
  public:
    RMM_COMPAT_UPSTREAM_MEMBERS(aligned_resource_adaptor)

    static constexpr std::size_t default_alignment_threshold = 0;

    /** @throws logic_error if the alignment is no power of two */
    explicit aligned_resource_adaptor(
        detail::any_device_resource upstream,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT,
        std::size_t alignment_threshold = default_alignment_threshold)
        : adaptor_over_upstream(std::move(upstream), [&](const rmmc::resource &mr) {
              rmmc::aligned_options options;
              RMM_EXPECTS(is_pow2(alignment), "the alignment is no power of two");
              options.alignment_bytes = alignment;
              options.threshold_bytes = alignment_threshold;
              return rmmc::aligned_adaptor<>(mr, options);
          })
    {
    }
};
RMM_COMPAT_DEDUCTION(aligned_resource_adaptor)

namespace detail
{
RMM_COMPAT_IS_KNOWN(aligned_resource_adaptor)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_ALIGNED_RESOURCE_ADAPTOR_HPP */
