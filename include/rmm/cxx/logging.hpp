/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/logging.hpp
 *
 * The adaptor that logs every allocation (rmm/logging_adaptor.h), and the library's debug log
 * (rmm/log.h).
 *
 * Lifetime: the adaptor owns its sink. A function that was made the log's sink lives until the
 * process ends, because another thread may still be sending it a message.
 *
 * Threads: as those headers. Exceptions: what a sink or a log function throws comes out at
 * the C++ call that it runs for if that call fails; take_unhandled_exception() returns it
 * otherwise. Logging never makes an allocation fail.
 */
#ifndef RMM_CXX_LOGGING_HPP
#define RMM_CXX_LOGGING_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <rmm/cxx/adaptors.hpp>
#include <rmm/cxx/callback.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/log.h>
#include <rmm/logging_adaptor.h>

namespace rmmc
{

template <std::uint32_t Properties = RMM_DEVICE_ACCESSIBLE>
class logging_adaptor : public resource_with<Properties>
{
  public:
    static constexpr const char *type_name = "logging";
    using sink_type = std::function<void(std::string_view)>;

    explicit logging_adaptor(
        const resource &upstream,
        const rmm_logging_options_t &options = logging_options())
        : resource_with<Properties>(
              detail::create(rmm_logging_adaptor_create, upstream.get(), &options))
    {
    }
    /** Append to a file; %d and %p in its path stand for the device and the process. */
    logging_adaptor(const resource &upstream, const std::string &path)
        : logging_adaptor(upstream, options_of(path))
    {
    }
    /** @param sink gets whole rows; replaces the sink of the options, besides their path */
    logging_adaptor(
        const resource &upstream, sink_type sink,
        const rmm_logging_options_t &options = logging_options())
        : resource_with<Properties>(make(upstream, std::move(sink), options))
    {
    }
    logging_adaptor(detail::as_is, resource mr)
        : resource_with<Properties>(std::move(mr))
    {
    }

    /** Write all rows. @throws io_error if rows were lost */
    void flush() const
    {
        detail::call().check(rmm_logging_flush(this->get()));
    }
    /** "" if there is no file. */
    std::string path() const
    {
        return rmm_logging_path(this->get());
    }
    /** The first row. @param format RMM_LOGGING_FORMAT_* */
    static std::string header(std::uint32_t format = RMM_LOGGING_FORMAT_RMM)
    {
        const char *text = rmm_logging_header(format);
        return text != nullptr ? text : "";
    }

  private:
    static logging_options options_of(const std::string &path) noexcept
    {
        logging_options options;
        options.path = path.c_str();
        return options;
    }
    static resource
    make(const resource &upstream, sink_type &&sink, const rmm_logging_options_t &given)
    {
        rmm_logging_options_t options = given;
        std::unique_ptr<sink_type> kept(new sink_type(std::move(sink)));

        options.sink = *kept ? run : nullptr;
        options.sink_arg = kept.get();
        options.sink_destroy = destroy;
        resource made = detail::create(
            rmm_logging_adaptor_create, upstream.get(),
            static_cast<const rmm_logging_options_t *>(&options));
        kept.release();
        return made;
    }
    static void run(const char *rows, std::size_t length, void *sink)
    {
        detail::run_void(detail::callback_kind::sink, [&] {
            (*static_cast<sink_type *>(sink))(std::string_view(rows, length));
        });
    }
    static void destroy(void *sink)
    {
        detail::run_void(detail::callback_kind::free, [&] {
            delete static_cast<sink_type *>(sink);
        });
    }
};
template <class Upstream, class... More>
logging_adaptor(const Upstream &, const More &...)
    -> logging_adaptor<detail::properties_of_v<Upstream>>;

/* --- the debug log --------------------------------------------------------------------- */

inline rmm_log_level_t get_log_level() noexcept
{
    return rmm_log_get_level();
}

/** @throws unsupported if such messages are compiled out */
inline void set_log_level(rmm_log_level_t level)
{
    detail::call().check(rmm_log_set_level(level));
}

using log_function = std::function<void(rmm_log_level_t, std::string_view)>;

namespace detail
{

inline void run_log(rmm_log_level_t level, const char *message, void *function)
{
    run_void(callback_kind::sink, [&] {
        (*static_cast<const log_function *>(function))(level, message);
    });
}

/* A log function and the one before it: a list, so that none counts as lost. */
struct log_record {
    log_function function;
    log_record *previous;
};
inline std::atomic<log_record *> log_records{nullptr};

} /* namespace detail */

/** Send the log to a function; an empty one: to the ring of /rmm only. */
inline void log_to(log_function function)
{
    if (!function) {
        detail::call().check(rmm_log_to_callback(nullptr, nullptr));
        return;
    }
    auto *record =
        new detail::log_record{std::move(function), detail::log_records.load()};

    while (!detail::log_records.compare_exchange_weak(record->previous, record)) {
    }
    detail::call().check(rmm_log_to_callback(detail::run_log, &record->function));
}

/** Append the log to a file. @throws io_error */
inline void log_to_file(const std::string &path)
{
    detail::call().check(rmm_log_to_file(path.c_str()));
}

inline void log_to_stderr() noexcept
{
    rmm_log_to_stderr();
}

} /* namespace rmmc */

#endif /* RMM_CXX_LOGGING_HPP */
