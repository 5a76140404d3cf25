/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/adaptors.hpp
 *
 * The adaptors. Each passes requests on to an upstream, of which it keeps a reference; its C
 * header says what it does. The template argument is what is known of the memory: it follows
 * from the class of the upstream, so `limiting_adaptor limited(pool, options)` names none. A
 * plain `resource` has to be accessible to the device, or the constructor throws
 * invalid_argument; limiting_adaptor<RMM_HOST_ACCESSIBLE> asks for another, <0> for nothing.
 *
 * Lifetime, threads, exceptions: as rmm/cxx/resource.hpp.
 */
#ifndef RMM_CXX_ADAPTORS_HPP
#define RMM_CXX_ADAPTORS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rmm/aligned_adaptor.h>
#include <rmm/cxx/resource.hpp>
#include <rmm/failure_callback_adaptor.h>
#include <rmm/limiting_adaptor.h>
#include <rmm/logging_adaptor.h>
#include <rmm/prefetch_adaptor.h>
#include <rmm/thread_safe_adaptor.h>
#include <rmm/tracking_adaptor.h>

namespace rmmc
{

using aligned_options = with_defaults<rmm_aligned_options_t>;
using limiting_options = with_defaults<rmm_limiting_options_t>;
using logging_options = with_defaults<rmm_logging_options_t>;
using prefetch_options = with_defaults<rmm_prefetch_options_t>;
using thread_safe_options = with_defaults<rmm_thread_safe_options_t>;
using tracking_options = with_defaults<rmm_tracking_options_t>;

namespace detail
{

/* The known properties of an adaptor's memory, from the type of its upstream. */
template <std::uint32_t Properties> struct known_properties {
    static constexpr std::uint32_t value = Properties;
};
template <std::uint32_t Properties>
known_properties<Properties> properties_of(const resource_with<Properties> &);
known_properties<RMM_DEVICE_ACCESSIBLE> properties_of(const resource &);

template <class Upstream>
inline constexpr std::uint32_t properties_of_v =
    decltype(properties_of(std::declval<const Upstream &>()))::value;

} /* namespace detail */

template <std::uint32_t Properties = RMM_DEVICE_ACCESSIBLE>
class aligned_adaptor : public resource_with<Properties>
{
  public:
    static constexpr const char *type_name = "aligned";

    explicit aligned_adaptor(
        const resource &upstream,
        const rmm_aligned_options_t &options = aligned_options())
        : resource_with<Properties>(
              detail::create(rmm_aligned_adaptor_create, upstream.get(), &options))
    {
    }
    aligned_adaptor(detail::as_is, resource mr)
        : resource_with<Properties>(std::move(mr))
    {
    }

    std::uint64_t alignment_bytes() const
    {
        return detail::figure_of<std::uint64_t>(rmm_aligned_get_alignment, *this);
    }
    std::uint64_t threshold_bytes() const
    {
        return detail::figure_of<std::uint64_t>(rmm_aligned_get_threshold, *this);
    }
};
template <class Upstream, class... Options>
aligned_adaptor(const Upstream &, const Options &...)
    -> aligned_adaptor<detail::properties_of_v<Upstream>>;

template <std::uint32_t Properties = RMM_DEVICE_ACCESSIBLE>
class limiting_adaptor : public resource_with<Properties>
{
  public:
    static constexpr const char *type_name = "limiting";

    limiting_adaptor(const resource &upstream, const rmm_limiting_options_t &options)
        : resource_with<Properties>(
              detail::create(rmm_limiting_adaptor_create, upstream.get(), &options))
    {
    }
    limiting_adaptor(const resource &upstream, std::uint64_t limit_bytes)
        : limiting_adaptor(upstream, options_of(limit_bytes))
    {
    }
    limiting_adaptor(detail::as_is, resource mr)
        : resource_with<Properties>(std::move(mr))
    {
    }

    std::uint64_t allocated_bytes() const
    {
        return detail::figure_of<std::uint64_t>(rmm_limiting_get_allocated, *this);
    }
    std::uint64_t limit_bytes() const
    {
        return detail::figure_of<std::uint64_t>(rmm_limiting_get_limit, *this);
    }
    std::uint64_t alignment_bytes() const
    {
        return detail::figure_of<std::uint64_t>(rmm_limiting_get_alignment, *this);
    }

  private:
    static limiting_options options_of(std::uint64_t limit_bytes) noexcept
    {
        limiting_options options;
        options.limit_bytes = limit_bytes;
        return options;
    }
};
template <class Upstream, class Options>
limiting_adaptor(const Upstream &, const Options &)
    -> limiting_adaptor<detail::properties_of_v<Upstream>>;

template <std::uint32_t Properties = RMM_DEVICE_ACCESSIBLE>
class prefetch_adaptor : public resource_with<Properties>
{
  public:
    static constexpr const char *type_name = "prefetch";

    explicit prefetch_adaptor(
        const resource &upstream,
        const rmm_prefetch_options_t &options = prefetch_options())
        : resource_with<Properties>(
              detail::create(rmm_prefetch_adaptor_create, upstream.get(), &options))
    {
    }
    prefetch_adaptor(detail::as_is, resource mr)
        : resource_with<Properties>(std::move(mr))
    {
    }
};
template <class Upstream, class... Options>
prefetch_adaptor(const Upstream &, const Options &...)
    -> prefetch_adaptor<detail::properties_of_v<Upstream>>;

template <std::uint32_t Properties = RMM_DEVICE_ACCESSIBLE>
class thread_safe_adaptor : public resource_with<Properties>
{
  public:
    static constexpr const char *type_name = "thread_safe";

    explicit thread_safe_adaptor(
        const resource &upstream,
        const rmm_thread_safe_options_t &options = thread_safe_options())
        : resource_with<Properties>(
              detail::create(rmm_thread_safe_adaptor_create, upstream.get(), &options))
    {
    }
    thread_safe_adaptor(detail::as_is, resource mr)
        : resource_with<Properties>(std::move(mr))
    {
    }
};
template <class Upstream, class... Options>
thread_safe_adaptor(const Upstream &, const Options &...)
    -> thread_safe_adaptor<detail::properties_of_v<Upstream>>;

/** A live block of a tracking adaptor. */
struct tracked_block {
    void *ptr;
    std::size_t bytes;
    std::vector<void *> frames; /**< return addresses, innermost first; maybe none */
};

template <std::uint32_t Properties = RMM_DEVICE_ACCESSIBLE>
class tracking_adaptor : public resource_with<Properties>
{
  public:
    static constexpr const char *type_name = "tracking";

    explicit tracking_adaptor(
        const resource &upstream,
        const rmm_tracking_options_t &options = tracking_options())
        : resource_with<Properties>(
              detail::create(rmm_tracking_adaptor_create, upstream.get(), &options))
    {
    }
    tracking_adaptor(detail::as_is, resource mr)
        : resource_with<Properties>(std::move(mr))
    {
    }

    /** The live blocks, by rising address. */
    std::vector<tracked_block> outstanding() const
    {
        rmm_tracking_block_t *blocks = nullptr;
        std::size_t count = 0;
        std::vector<tracked_block> copies;

        detail::call().check(rmm_tracking_outstanding(this->get(), &blocks, &count));
        std::unique_ptr<rmm_tracking_block_t, decltype(&rmm_tracking_free)> owner(
            blocks, rmm_tracking_free);
        copies.reserve(count);
        for (std::size_t i = 0; i < count; i++) {
            copies.push_back(
                {blocks[i].ptr, blocks[i].bytes,
                 std::vector<void *>(
                     blocks[i].frames, blocks[i].frames + blocks[i].frame_count)});
        }
        return copies;
    }
    /** Print them to a file descriptor, or to the log. */
    void report(int fd = RMM_TRACKING_TO_LOG) const
    {
        detail::call().check(rmm_tracking_report(this->get(), fd));
    }
    /** The same text; a block that another thread allocates meanwhile may be missing. */
    std::string report_text() const
    {
        std::string text;
        std::size_t length = 0;

        do { /* it may have grown since its length was asked for */
            text.resize(length + 1);
            detail::call().check(rmm_tracking_report_to_buffer(
                this->get(), &text[0], text.size(), &length));
        } while (length >= text.size());
        text.resize(length);
        return text;
    }
};
template <class Upstream, class... Options>
tracking_adaptor(const Upstream &, const Options &...)
    -> tracking_adaptor<detail::properties_of_v<Upstream>>;

/**
 * The callback takes the size of the failed request and returns whether to try again. It
 * lives as long as the adaptor. What it throws, the allocation throws.
 */
template <std::uint32_t Properties = RMM_DEVICE_ACCESSIBLE>
class failure_callback_adaptor : public resource_with<Properties>
{
  public:
    static constexpr const char *type_name = "failure_callback";
    using callback_type = std::function<bool(std::size_t)>;

    /** @param flags RMM_FAILURE_CALLBACK_ANY, or 0: for out_of_memory only */
    failure_callback_adaptor(
        const resource &upstream, callback_type callback, std::uint32_t flags = 0,
        const char *name = nullptr)
        : resource_with<Properties>(make(upstream, std::move(callback), flags, name))
    {
    }
    failure_callback_adaptor(detail::as_is, resource mr)
        : resource_with<Properties>(std::move(mr))
    {
    }

  private:
    static resource make(
        const resource &upstream, callback_type &&callback, std::uint32_t flags,
        const char *name)
    {
        with_defaults<rmm_failure_callback_options_t> options;
        std::unique_ptr<callback_type> kept(new callback_type(std::move(callback)));

        options.callback = *kept ? run : nullptr;
        options.arg = kept.get();
        options.flags = flags;
        options.name = name;
        options.destroy = destroy;
        resource made = detail::create(
            rmm_failure_callback_adaptor_create, upstream.get(),
            static_cast<const rmm_failure_callback_options_t *>(&options));
        kept.release();
        return made;
    }
    static bool run(std::size_t bytes, void *callback)
    {
        return detail::run_bool(detail::callback_kind::request, [&] {
            return (*static_cast<callback_type *>(callback))(bytes);
        });
    }
    static void destroy(void *callback)
    {
        detail::run_void(detail::callback_kind::free, [&] {
            delete static_cast<callback_type *>(callback);
        });
    }
};
template <class Upstream, class Callback, class... More>
failure_callback_adaptor(const Upstream &, Callback, More...)
    -> failure_callback_adaptor<detail::properties_of_v<Upstream>>;

} /* namespace rmmc */

#endif /* RMM_CXX_ADAPTORS_HPP */
