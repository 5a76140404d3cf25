/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/statistics_resource_adaptor.hpp
 *
 * Counts allocations and bytes, in scopes too (rmm/statistics_adaptor.h).
 */
#ifndef RMM_COMPAT_MR_STATISTICS_RESOURCE_ADAPTOR_HPP
#define RMM_COMPAT_MR_STATISTICS_RESOURCE_ADAPTOR_HPP

#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <stack>
#include <utility>

#include <rmm/cxx/statistics.hpp>
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
class statistics_resource_adaptor : public detail::adaptor_over_upstream
{
  public:
    RMM_COMPAT_UPSTREAM_MEMBERS(statistics_resource_adaptor)

    using read_lock_t = std::shared_lock<std::shared_mutex>;
    using write_lock_t = std::unique_lock<std::shared_mutex>;

    struct counter {
        std::int64_t value = 0; /**< allocated less freed */
        std::int64_t peak = 0;  /**< the most of it */
        std::int64_t total = 0; /**< allocated */
    };

    explicit statistics_resource_adaptor(detail::any_device_resource upstream)
        : adaptor_over_upstream(std::move(upstream), [](const rmmc::resource &mr) {
              return rmmc::statistics_adaptor<>(mr);
          })
    {
    }
    /** Of the innermost scope; without any, since the creation. */
    [[nodiscard]] counter get_bytes_counter() const noexcept
    {
        return bytes_of(figures());
    }
    [[nodiscard]] counter get_allocations_counter() const noexcept
    {
        return allocations_of(figures());
    }
    /** Begin a scope. @return bytes and allocations of the one around it */
    std::pair<counter, counter> push_counters()
    {
        return figures_of(rmm_statistics_push);
    }
    /** End the innermost scope. @return its bytes and allocations.
     * @throws out_of_range without one */
    std::pair<counter, counter> pop_counters()
    {
        return figures_of(rmm_statistics_pop);
    }

  private:
    static counter bytes_of(const rmm_stats_t &stats) noexcept
    {
        return {
            rmm_stats_difference(stats.current_bytes),
            rmm_stats_difference(stats.peak_bytes),
            rmm_stats_difference(stats.total_bytes)};
    }
    static counter allocations_of(const rmm_stats_t &stats) noexcept
    {
        return {
            rmm_stats_difference(stats.current_count),
            rmm_stats_difference(stats.peak_count),
            rmm_stats_difference(stats.total_count)};
    }
    rmm_stats_t figures() const noexcept
    {
        rmm_stats_t stats = RMM_STATS_INIT;

        (void)!rmm_statistics_get(mr_.get(), &stats);
        return stats;
    }
    template <class Function> std::pair<counter, counter> figures_of(Function function)
    {
        rmm_stats_t stats = RMM_STATS_INIT;

        rmm::detail::check([&] { return function(mr_.get(), &stats); });
        return {bytes_of(stats), allocations_of(stats)};
    }
};
RMM_COMPAT_DEDUCTION(statistics_resource_adaptor)
RMM_COMPAT_MAKER(make_statistics_adaptor, statistics_resource_adaptor)

namespace detail
{
RMM_COMPAT_IS_KNOWN(statistics_resource_adaptor)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_STATISTICS_RESOURCE_ADAPTOR_HPP */
