/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/brace_logger.hpp
 *
 * rmm::logger() of RMM 0.16 to 24.12, which was one of spdlog: the logger of these headers with the
 * functions that spdlog's has, messages with fields in braces among them. A level is one of spdlog's or
 * of another enumeration of the same values.
 *
 * Threads: any.
 */
#ifndef RMM_COMPAT_DETAIL_BRACE_LOGGER_HPP
#define RMM_COMPAT_DETAIL_BRACE_LOGGER_HPP

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <rapids_logger/logger.hpp>
#include <rmm/detail/brace_format.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/detail/spdlog.hpp>
#include <rmm/detail/spdlog_sink.hpp>

namespace RMM_NAMESPACE
{
namespace detail
{

/* May a function like printf() get such a value? */
template <class T>
inline constexpr bool is_printable =
    std::is_scalar_v<std::decay_t<T>> || std::is_same_v<T, std::string>;

/* The sinks of a logger, to which one of spdlog can be added. */
class any_sinks
{
  public:
    explicit any_sinks(rapids_logger::sink_vector &sinks) : sinks_(sinks)
    {
    }
    void push_back(rapids_logger::sink_ptr sink)
    {
        sinks_.push_back(std::move(sink));
    }
#if RMM_COMPAT_HAS_SPDLOG
    void push_back(spdlog::sink_ptr sink)
    {
        sinks_.push_back(std::make_shared<spdlog_sink>(std::move(sink)));
    }
#endif
    void pop_back()
    {
        sinks_.pop_back();
    }
    void clear()
    {
        sinks_.clear();
    }
    [[nodiscard]] std::size_t size() const
    {
        return sinks_.size();
    }
    [[nodiscard]] bool empty() const
    {
        return size() == 0;
    }

  private:
    rapids_logger::sink_vector &sinks_;
};

class brace_logger
{
    using level_enum = spdlog::level::level_enum;

  public:
    explicit brace_logger(rapids_logger::logger &logger) : logger_(logger)
    {
    }
    brace_logger(const brace_logger &) = delete;
    brace_logger &operator=(const brace_logger &) = delete;
    /** That of RMM 25.02. */
    operator rapids_logger::logger &() const noexcept
    {
        return logger_;
    }

    template <class Level> void set_level(Level level)
    {
        logger_.set_level(as_ours(level));
    }
    [[nodiscard]] level_enum level() const
    {
        return static_cast<level_enum>(logger_.level());
    }
    template <class Level> void flush_on(Level level)
    {
        logger_.flush_on(as_ours(level));
    }
    [[nodiscard]] level_enum flush_level() const
    {
        return static_cast<level_enum>(logger_.flush_level());
    }
    template <class Level> [[nodiscard]] bool should_log(Level level) const
    {
        return logger_.should_log(as_ours(level));
    }
    void set_pattern(const std::string &pattern)
    {
        logger_.set_pattern(pattern);
    }
    void flush()
    {
        logger_.flush();
    }
    [[nodiscard]] any_sinks sinks()
    {
        return any_sinks(logger_.sinks());
    }

    /** Without values the text is taken as it is. */
    template <class Level, class... Values>
    void log(Level level, std::string_view format, const Values &...values)
    {
        if (should_log(level)) {
            logger_.log(
                as_ours(level), sizeof...(values) == 0
                                    ? std::string(format)
                                    : brace_formatted(format, values...));
        }
    }
#if RMM_COMPAT_HAS_SPDLOG
    /** SPDLOG_LOGGER_INFO(&rmm::logger(), ...). */
    template <class Level, class... Values>
    void
    log(spdlog::source_loc, Level level, std::string_view format,
        const Values &...values)
    {
        log(level, format, values...);
    }
#endif
    template <class... Values>
    void trace(std::string_view format, const Values &...values)
    {
        log(level_enum::trace, format, values...);
    }
    template <class... Values>
    void debug(std::string_view format, const Values &...values)
    {
        log(level_enum::debug, format, values...);
    }
    template <class... Values>
    void info(std::string_view format, const Values &...values)
    {
        log(level_enum::info, format, values...);
    }
    template <class... Values>
    void warn(std::string_view format, const Values &...values)
    {
        log(level_enum::warn, format, values...);
    }
    template <class... Values>
    void error(std::string_view format, const Values &...values)
    {
        log(level_enum::err, format, values...);
    }
    template <class... Values>
    void critical(std::string_view format, const Values &...values)
    {
        log(level_enum::critical, format, values...);
    }
    /* A message of RMM_LOG_INFO(), ...: with fields in braces until 24.12, as of printf() since. */
    template <class Level, class... Values>
    void
    log_of_any_version(Level level, const std::string &format, const Values &...values)
    {
        if constexpr ((is_printable<Values> && ...)) {
            if (format.find('{') == std::string::npos) {
                logger_.log(as_ours(level), format, values...);
                return;
            }
        }
        log(level, format, values...);
    }

  private:
    template <class Level> static rapids_logger::level_enum as_ours(Level level)
    {
        static_assert(std::is_enum_v<Level>, "the level is one of spdlog::level");
        return static_cast<rapids_logger::level_enum>(level);
    }

    rapids_logger::logger &logger_;
};

/* Where RMM wrote its log until 24.12. Here that is stderr without the variable. */
inline std::string default_log_filename()
{
    const char *name = std::getenv("RMM_DEBUG_LOG_FILE");

    return name != nullptr ? name : "rmm_log.txt";
}

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DETAIL_BRACE_LOGGER_HPP */
