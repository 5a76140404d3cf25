/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/tracking_resource_adaptor.hpp
 *
 * Remembers the live allocations (rmm/tracking_adaptor.h).
 */
#ifndef RMM_COMPAT_MR_TRACKING_RESOURCE_ADAPTOR_HPP
#define RMM_COMPAT_MR_TRACKING_RESOURCE_ADAPTOR_HPP

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include <rmm/cxx/adaptors.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/detail/library_resource.hpp>
#include <rmm/mr/per_device_resource.hpp> /* for programs: as RMM's */

namespace RMM_NAMESPACE
{
namespace mr
{

RMM_COMPAT_OVER_UPSTREAM
class tracking_resource_adaptor : public detail::adaptor_over_upstream
{
  public:
    RMM_COMPAT_UPSTREAM_MEMBERS(tracking_resource_adaptor)

    using read_lock_t = std::shared_lock<std::shared_mutex>;
    using write_lock_t = std::unique_lock<std::shared_mutex>;

    struct allocation_info {
        /** Return addresses, innermost first; null if stacks are not captured. */
        std::unique_ptr<std::vector<void *>> strace;
        std::size_t allocation_size;
    };

    tracking_resource_adaptor(
        detail::any_device_resource upstream, bool capture_stacks = false)
        : adaptor_over_upstream(
              std::move(upstream),
              [&](const rmmc::resource &mr) {
                  rmmc::tracking_options options;
                  options.capture_stacks = capture_stacks;
                  return rmmc::tracking_adaptor<>(mr, options);
              }),
          outstanding_(std::make_shared<std::map<void *, allocation_info>>())
    {
    }
    /**
     * The live allocations. The result is the one of the last call, which copies share: no
     * other thread may call this meanwhile.
     */
    [[nodiscard]] const std::map<void *, allocation_info> &
    get_outstanding_allocations() const
    {
        outstanding_->clear();
        for (rmmc::tracked_block &block : outstanding()) {
            (*outstanding_)[block.ptr] = {
                block.frames.empty()
                    ? nullptr
                    : std::make_unique<std::vector<void *>>(std::move(block.frames)),
                block.bytes};
        }
        return *outstanding_;
    }
    [[nodiscard]] std::size_t get_allocated_bytes() const noexcept
    {
        rmm_stats_t stats = RMM_STATS_INIT;

        (void)!rmm_resource_get_stats(mr_.get(), &stats);
        return stats.current_bytes;
    }
    [[nodiscard]] std::string get_outstanding_allocations_str() const
    {
        return detail::translated([&] { return typed().report_text(); });
    }
    /** At level debug. */
    void log_outstanding_allocations() const
    {
        if (default_logger().should_log(rapids_logger::level_enum::debug)) {
            default_logger().debug(
                "Outstanding Allocations: %s",
                get_outstanding_allocations_str().c_str());
        }
    }

  private:
    rmmc::tracking_adaptor<> typed() const
    {
        return rmmc::tracking_adaptor<>(rmmc::detail::as_is(), mr_);
    }
    std::vector<rmmc::tracked_block> outstanding() const
    {
        return detail::translated([&] { return typed().outstanding(); });
    }

    std::shared_ptr<std::map<void *, allocation_info>> outstanding_;
};
RMM_COMPAT_DEDUCTION(tracking_resource_adaptor)
RMM_COMPAT_MAKER(make_tracking_adaptor, tracking_resource_adaptor)

namespace detail
{
RMM_COMPAT_IS_KNOWN(tracking_resource_adaptor)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_TRACKING_RESOURCE_ADAPTOR_HPP */
