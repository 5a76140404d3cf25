/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/statistics.hpp
 *
 * The statistics adaptor (rmm/statistics_adaptor.h) and a scope of it. Figures of any
 * resource, without scopes: resource::get_stats().
 *
 * Lifetime, threads, exceptions: as rmm/cxx/resource.hpp and the C header.
 */
#ifndef RMM_CXX_STATISTICS_HPP
#define RMM_CXX_STATISTICS_HPP

#include <cstdint>
#include <utility>

#include <rmm/cxx/adaptors.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/statistics_adaptor.h>

namespace rmmc
{

using statistics_options = with_defaults<rmm_statistics_options_t>;

namespace detail
{

template <class Function> stats stats_of(Function function, const resource &mr)
{
    stats figures;

    call().check(function(mr.get(), &figures));
    return figures;
}

} /* namespace detail */

template <std::uint32_t Properties = RMM_DEVICE_ACCESSIBLE>
class statistics_adaptor : public resource_with<Properties>
{
  public:
    static constexpr const char *type_name = "statistics";

    explicit statistics_adaptor(
        const resource &upstream,
        const rmm_statistics_options_t &options = statistics_options())
        : resource_with<Properties>(
              detail::create(rmm_statistics_adaptor_create, upstream.get(), &options))
    {
    }
    statistics_adaptor(detail::as_is, resource mr)
        : resource_with<Properties>(std::move(mr))
    {
    }

    /** The counters of the innermost scope; without any, since creation. */
    stats counters() const
    {
        return detail::stats_of(rmm_statistics_get, *this);
    }
    /** Begin a scope. @return the figures of the one around it */
    stats push() const
    {
        return detail::stats_of(rmm_statistics_push, *this);
    }
    /** End the innermost scope. @return its figures. @throws out_of_range without one */
    stats pop() const
    {
        return detail::stats_of(rmm_statistics_pop, *this);
    }
    /** The same three for the calling thread's scopes. */
    stats thread_counters() const
    {
        return detail::stats_of(rmm_statistics_thread_get, *this);
    }
    stats thread_push() const
    {
        return detail::stats_of(rmm_statistics_thread_push, *this);
    }
    stats thread_pop() const
    {
        return detail::stats_of(rmm_statistics_thread_pop, *this);
    }
};
template <class Upstream, class... Options>
statistics_adaptor(const Upstream &, const Options &...)
    -> statistics_adaptor<detail::properties_of_v<Upstream>>;

/**
 * A scope of the calling thread, from here to the end of the block:
 *
 *     rmmc::scoped_statistics scope(statistics);
 *     ...
 *     std::uint64_t most = scope.counters().peak_bytes;
 *
 * Use it on one thread. Scopes end in the reverse order of their beginning.
 */
class scoped_statistics
{
  public:
    template <std::uint32_t Properties>
    explicit scoped_statistics(const statistics_adaptor<Properties> &adaptor)
        : mr_(adaptor)
    {
        adaptor.thread_push();
    }
    scoped_statistics(const scoped_statistics &) = delete;
    scoped_statistics &operator=(const scoped_statistics &) = delete;
    ~scoped_statistics()
    {
        if (mr_) {
            (void)!rmm_statistics_thread_pop(mr_.get(), nullptr);
        }
    }

    stats counters() const
    {
        return detail::stats_of(rmm_statistics_thread_get, mr_);
    }
    /** End the scope now. @return its figures */
    stats pop()
    {
        resource ended = std::move(mr_);
        return detail::stats_of(rmm_statistics_thread_pop, ended);
    }

  private:
    resource mr_; /* empty: the scope has ended */
};

} /* namespace rmmc */

#endif /* RMM_CXX_STATISTICS_HPP */
