/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/shortage.hpp
 *
 * The adaptors for when memory is short: fallback_adaptor allocates elsewhere, retry_adaptor tries
 * again, wait_adaptor waits until another thread frees. Their C headers say what they do; the
 * template argument is that of rmm/cxx/adaptors.hpp.
 *
 * Lifetime, threads, exceptions: as rmm/cxx/resource.hpp.
 */
#ifndef RMM_CXX_SHORTAGE_HPP
#define RMM_CXX_SHORTAGE_HPP

#include <chrono>
#include <cstdint>
#include <utility>

#include <rmm/cxx/adaptors.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/fallback_adaptor.h>
#include <rmm/retry_adaptor.h>
#include <rmm/wait_adaptor.h>

namespace rmmc
{

using retry_options = with_defaults<rmm_retry_options_t>;
using wait_options = with_defaults<rmm_wait_options_t>;

namespace detail
{

/* As an option: at least 1, because 0 is the default; at most what fits. */
inline std::uint32_t timeout_ms(std::chrono::milliseconds timeout) noexcept
{
    return timeout.count() < 1            ? 1
           : timeout.count() > UINT32_MAX ? UINT32_MAX
                                          : static_cast<std::uint32_t>(timeout.count());
}

} /* namespace detail */

/** Known of the memory is what is known of both, upstream's and the alternate's. */
template <std::uint32_t Properties = RMM_DEVICE_ACCESSIBLE>
class fallback_adaptor : public resource_with<Properties>
{
  public:
    static constexpr const char *type_name = "fallback";

    fallback_adaptor(
        const resource &upstream, const resource &alternate, const char *name = nullptr)
        : resource_with<Properties>(make(upstream, alternate, name))
    {
    }
    fallback_adaptor(detail::as_is, resource mr)
        : resource_with<Properties>(std::move(mr))
    {
    }

    resource alternate() const
    {
        return resource::share(rmm_fallback_get_alternate(this->get()));
    }
    /** The blocks of the alternate that are live now. */
    std::uint64_t alternate_count() const
    {
        return detail::figure_of<std::uint64_t>(
            rmm_fallback_get_alternate_count, *this);
    }

  private:
    static resource
    make(const resource &upstream, const resource &alternate, const char *name)
    {
        with_defaults<rmm_fallback_options_t> options;

        options.alternate = alternate.get();
        options.name = name;
        return detail::create(
            rmm_fallback_adaptor_create, upstream.get(),
            static_cast<const rmm_fallback_options_t *>(&options));
    }
};
template <class Upstream, class Alternate, class... Name>
fallback_adaptor(const Upstream &, const Alternate &, Name...) -> fallback_adaptor<
    detail::properties_of_v<Upstream> & detail::properties_of_v<Alternate>>;

template <std::uint32_t Properties = RMM_DEVICE_ACCESSIBLE>
class retry_adaptor : public resource_with<Properties>
{
  public:
    static constexpr const char *type_name = "retry";

    explicit retry_adaptor(
        const resource &upstream, const rmm_retry_options_t &options = retry_options())
        : resource_with<Properties>(
              detail::create(rmm_retry_adaptor_create, upstream.get(), &options))
    {
    }
    retry_adaptor(const resource &upstream, std::chrono::milliseconds timeout)
        : retry_adaptor(upstream, options_of(timeout))
    {
    }
    retry_adaptor(detail::as_is, resource mr) : resource_with<Properties>(std::move(mr))
    {
    }

  private:
    static retry_options options_of(std::chrono::milliseconds timeout) noexcept
    {
        retry_options options;
        options.timeout_ms = detail::timeout_ms(timeout);
        return options;
    }
};
template <class Upstream, class... Options>
retry_adaptor(const Upstream &, const Options &...)
    -> retry_adaptor<detail::properties_of_v<Upstream>>;

template <std::uint32_t Properties = RMM_DEVICE_ACCESSIBLE>
class wait_adaptor : public resource_with<Properties>
{
  public:
    static constexpr const char *type_name = "wait";

    explicit wait_adaptor(
        const resource &upstream, const rmm_wait_options_t &options = wait_options())
        : resource_with<Properties>(
              detail::create(rmm_wait_adaptor_create, upstream.get(), &options))
    {
    }
    wait_adaptor(const resource &upstream, std::chrono::milliseconds timeout)
        : wait_adaptor(upstream, options_of(timeout))
    {
    }
    wait_adaptor(detail::as_is, resource mr) : resource_with<Properties>(std::move(mr))
    {
    }

    /** The requests that wait at this moment. */
    std::uint64_t waiting() const
    {
        return detail::figure_of<std::uint64_t>(rmm_wait_get_waiting, *this);
    }

  private:
    static wait_options options_of(std::chrono::milliseconds timeout) noexcept
    {
        wait_options options;
        options.timeout_ms = detail::timeout_ms(timeout);
        return options;
    }
};
template <class Upstream, class... Options>
wait_adaptor(const Upstream &, const Options &...)
    -> wait_adaptor<detail::properties_of_v<Upstream>>;

} /* namespace rmmc */

#endif /* RMM_CXX_SHORTAGE_HPP */
