/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/logger.hpp
 *
 * RMM's logger: this library's log (rmm/log.h) with more sinks. The level is the library's, but
 * one whose messages are compiled out of the library is set without an error, as in RMM, and then
 * counts for messages of the program.
 * The first call of default_logger() makes its sinks those of the library's messages too; the
 * first one writes where the log wrote before: to stderr, or the file of RMM_DEBUG_LOG_FILE.
 * That one keeps the form of the log's lines, which other processes may write to the same
 * file; a pattern is for the sinks that the program adds.
 */
#ifndef RMM_COMPAT_LOGGER_HPP
#define RMM_COMPAT_LOGGER_HPP

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <rapids_logger/logger.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/log.h>
#include <rmm/logger_macros.hpp>
#if RMM_COMPAT_CLASSIC
#include <rmm/detail/brace_logger.hpp>
#endif

namespace RMM_NAMESPACE
{
namespace detail
{

/* Where the library's log wrote before. */
class library_sink : public rapids_logger::sink
{
  public:
    library_sink(rmm_log_fn function, void *argument)
        : function_(function), argument_(argument)
    {
    }
    void message(const rapids_logger::log_record &record) override
    {
        pass(static_cast<rmm_log_level_t>(record.level), record.text);
    }
    void write(std::string_view lines) override
    {
        pass(RMM_LEVEL_INFO, std::string(lines));
    }
    void set_pattern(const std::string &) override
    {
    }
    void flush() override
    {
    }

  private:
    void pass(rmm_log_level_t level, const std::string &text)
    {
        if (function_ != nullptr) {
            function_(level, text.c_str(), argument_);
        }
    }

    rmm_log_fn function_;
    void *argument_;
};

class library_logger : public rapids_logger::logger
{
  public:
    library_logger() : logger("RMM")
    {
        rmm_log_fn function = nullptr;
        void *argument = nullptr;

        check([&] {
            return rmm_log_exchange_callback(receive, this, &function, &argument);
        });
        first_ = std::make_shared<library_sink>(function, argument);
        sinks().push_back(first_);
    }
    const rapids_logger::sink_ptr &first() const
    {
        return first_;
    }
    void set_level(rapids_logger::level_enum level) override
    {
        int next = static_cast<int>(level);

        while (next < RMM_LEVEL_INFO && rmm_log_set_level(static_cast<rmm_log_level_t>(
                                            next)) == RMM_ERR_UNSUPPORTED) {
            next++;
        }
        check([&] { return rmm_log_set_level(static_cast<rmm_log_level_t>(next)); });
        set_ = {level, static_cast<rapids_logger::level_enum>(next)};
    }
    rapids_logger::level_enum level() const override
    {
        const auto now = static_cast<rapids_logger::level_enum>(rmm_log_get_level());
        const levels set = set_;

        return now == set.of_library ? set.of_program : now;
    }

  private:
    /* A message of the library, on the thread that logs it. */
    static void receive(rmm_log_level_t level, const char *text, void *self)
    {
        rmmc::detail::run_void(rmmc::detail::callback_kind::sink, [&] {
            static_cast<library_logger *>(self)->pass_on(
                static_cast<rapids_logger::level_enum>(level), text);
        });
    }

    struct alignas(std::uint64_t) levels { /* aligned: or clang needs libatomic */
        rapids_logger::level_enum of_program;
        rapids_logger::level_enum of_library; /* the nearest that it has */
    };

    rapids_logger::sink_ptr first_;
    std::atomic<levels> set_{levels{
        rapids_logger::level_enum::n_levels, rapids_logger::level_enum::n_levels}};
};

RMM_EXPORT inline library_logger &the_logger()
{
    static auto *logger = new library_logger; /* the log may use it until the end */
    return *logger;
}

} /* namespace detail */

#if RMM_COMPAT_CLASSIC
/* Their namespace in RMM 25.02. */
using rapids_logger::basic_file_sink_mt;
using rapids_logger::level_enum;
using rapids_logger::null_sink_mt;
using rapids_logger::ostream_sink_mt;
using rapids_logger::sink_ptr;
using rapids_logger::stderr_sink_mt;
#endif

inline rapids_logger::logger &default_logger()
{
    return detail::the_logger();
}

/** Where the log wrote before the first call of default_logger(). */
inline rapids_logger::sink_ptr default_sink()
{
    return detail::the_logger().first();
}

/** The pattern of RMM's lines, for sinks that the program adds. */
inline std::string default_pattern()
{
    return "[%6t][%H:%M:%S:%f][%-6l] %v";
}

#if RMM_COMPAT_CLASSIC
/** The same logger with the functions of spdlog's, as until RMM 24.12. */
inline detail::brace_logger &logger()
{
    static auto *logger = new detail::brace_logger(default_logger());
    return *logger;
}
using rapids_logger::level_enum; /* its place in RMM 25.02 */
#endif

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_LOGGER_HPP */
