/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rapids_logger/logger.hpp
 *
 * The part of RAPIDS' logger that is in RMM's interface: levels, sinks, and a logger with
 * printf-like functions. There are no patterns: a line of a logger is as one of this
 * library's log (rmm/log.h), "[time][level] message".
 *
 * Threads: any function, any thread; a sink gets one call at a time from one logger.
 */
#ifndef RMM_COMPAT_RAPIDS_LOGGER_LOGGER_HPP
#define RMM_COMPAT_RAPIDS_LOGGER_LOGGER_HPP

#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifdef __GNUC__
#define RMM_COMPAT_RAPIDS_LOGGER rapids_logger __attribute__((visibility("default")))
#else
#define RMM_COMPAT_RAPIDS_LOGGER rapids_logger
#endif

namespace RMM_COMPAT_RAPIDS_LOGGER
{

enum class level_enum : std::int32_t {
    trace,
    debug,
    info,
    warn,
    error,
    critical,
    off,
    n_levels
};

inline const char *name_of(level_enum level)
{
    static const char *const names[] = {"trace", "debug",    "info", "warn",
                                        "error", "critical", "off"};

    return level >= level_enum::trace && level <= level_enum::off
               ? names[static_cast<std::size_t>(level)]
               : "unknown";
}

/** Where a logger writes to. */
class sink
{
  public:
    virtual ~sink() = default;
    /** Whole lines, with their newlines. */
    virtual void write(std::string_view lines) = 0;
    virtual void flush() = 0;
    /** A message of a logger: a line of it, unless the sink takes messages. */
    virtual void message(level_enum level, const std::string &text)
    {
        write(line_of(level, text));
    }

  private:
    static std::string line_of(level_enum level, const std::string &text)
    {
        const auto now = std::chrono::system_clock::now();
        const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
        std::tm local{};
        char time[32];

        localtime_r(&seconds, &local);
        (void)std::strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%S%z", &local);
        return std::string("[") + time + "][" + name_of(level) + "] " + text + "\n";
    }
};

using sink_ptr = std::shared_ptr<sink>;

class ostream_sink_mt : public sink
{
  public:
    /** @param stream outlives the sink */
    explicit ostream_sink_mt(std::ostream &stream, bool force_flush = false)
        : stream_(stream), force_flush_(force_flush)
    {
    }
    void write(std::string_view lines) override
    {
        const std::lock_guard<std::mutex> guard(lock_);

        stream_ << lines;
        if (force_flush_) {
            stream_.flush();
        }
    }
    void flush() override
    {
        const std::lock_guard<std::mutex> guard(lock_);

        stream_.flush();
    }

  private:
    std::mutex lock_; /* protects stream_ against other users of this sink */
    std::ostream &stream_;
    bool force_flush_;
};

namespace detail
{

struct open_file {
    open_file(const std::string &filename, bool truncate)
        : file(filename, truncate ? std::ios::trunc : std::ios::app)
    {
        if (!file) {
            throw std::runtime_error("cannot open the log file " + filename);
        }
    }
    std::ofstream file;
};

} /* namespace detail */

class basic_file_sink_mt : private detail::open_file, public ostream_sink_mt
{
  public:
    explicit basic_file_sink_mt(const std::string &filename, bool truncate = false)
        : open_file(filename, truncate), ostream_sink_mt(file)
    {
    }
};

class stderr_sink_mt : public sink
{
  public:
    void write(std::string_view lines) override
    {
        (void)std::fwrite(lines.data(), 1, lines.size(), stderr);
    }
    void flush() override
    {
        (void)std::fflush(stderr);
    }
};

class null_sink_mt : public sink
{
  public:
    void write(std::string_view) override
    {
    }
    void flush() override
    {
    }
};

using log_callback_t = std::function<void(int, const char *)>;
using flush_callback_t = std::function<void()>;

/** Passes messages to a function. */
class callback_sink_mt : public sink
{
  public:
    explicit callback_sink_mt(log_callback_t log, flush_callback_t flush = {})
        : log_(std::move(log)), flush_(std::move(flush))
    {
    }
    void write(std::string_view lines) override
    {
        log_(static_cast<int>(level_enum::info), std::string(lines).c_str());
    }
    void message(level_enum level, const std::string &text) override
    {
        log_(static_cast<int>(level), text.c_str());
    }
    void flush() override
    {
        if (flush_) {
            flush_();
        }
    }

  private:
    log_callback_t log_;
    flush_callback_t flush_;
};

/** The sinks of a logger. */
class sink_vector
{
  public:
    void push_back(sink_ptr sink)
    {
        const std::lock_guard<std::mutex> guard(lock_);
        sinks_.push_back(std::move(sink));
    }
    void pop_back()
    {
        const std::lock_guard<std::mutex> guard(lock_);
        sinks_.pop_back();
    }
    void clear()
    {
        const std::lock_guard<std::mutex> guard(lock_);
        sinks_.clear();
    }
    std::size_t size() const
    {
        const std::lock_guard<std::mutex> guard(lock_);
        return sinks_.size();
    }
    /** A copy, so that a sink may log or change the list. */
    std::vector<sink_ptr> snapshot() const
    {
        const std::lock_guard<std::mutex> guard(lock_);
        return sinks_;
    }

  private:
    mutable std::mutex lock_; /* protects sinks_ */
    std::vector<sink_ptr> sinks_;
};

class logger
{
  public:
    explicit logger(std::string name, std::vector<sink_ptr> sinks = {})
        : name_(std::move(name))
    {
        for (sink_ptr &sink : sinks) {
            sinks_.push_back(std::move(sink));
        }
    }
    logger(std::string name, const std::string &filename)
        : logger(std::move(name), {std::make_shared<basic_file_sink_mt>(filename)})
    {
    }
    logger(std::string name, std::ostream &stream)
        : logger(std::move(name), {std::make_shared<ostream_sink_mt>(stream)})
    {
    }
    virtual ~logger() = default;

    virtual void set_level(level_enum level)
    {
        level_ = level;
    }
    virtual level_enum level() const
    {
        return level_;
    }
    bool should_log(level_enum level) const
    {
        return level >= this->level() && level < level_enum::off;
    }
    sink_vector &sinks()
    {
        return sinks_;
    }
    const sink_vector &sinks() const
    {
        return sinks_;
    }
    void flush()
    {
        for (const sink_ptr &sink : sinks_.snapshot()) {
            sink->flush();
        }
    }

    /** To the sinks, if the level is on. */
    void log(level_enum level, const std::string &text)
    {
        if (should_log(level)) {
            pass_on(level, text);
        }
    }
    template <class First, class... Arguments>
    void log(level_enum level, const char *format, First first, Arguments... arguments)
    {
        if (should_log(level)) {
            pass_on(level, formatted(format, first, arguments...));
        }
    }
    template <class... Arguments> void trace(const char *format, Arguments... arguments)
    {
        log(level_enum::trace, format, arguments...);
    }
    template <class... Arguments> void debug(const char *format, Arguments... arguments)
    {
        log(level_enum::debug, format, arguments...);
    }
    template <class... Arguments> void info(const char *format, Arguments... arguments)
    {
        log(level_enum::info, format, arguments...);
    }
    template <class... Arguments> void warn(const char *format, Arguments... arguments)
    {
        log(level_enum::warn, format, arguments...);
    }
    template <class... Arguments> void error(const char *format, Arguments... arguments)
    {
        log(level_enum::error, format, arguments...);
    }
    template <class... Arguments>
    void critical(const char *format, Arguments... arguments)
    {
        log(level_enum::critical, format, arguments...);
    }

  protected:
    /* Whatever the level is: a message that has passed another's filter. */
    void pass_on(level_enum level, const std::string &text)
    {
        for (const sink_ptr &sink : sinks_.snapshot()) {
            sink->message(level, text);
        }
    }

  private:
    static std::string formatted(const char *format, ...)
    {
        std::va_list arguments, again;

        va_start(arguments, format);
        va_copy(again, arguments);
        const int length = std::vsnprintf(nullptr, 0, format, arguments);
        va_end(arguments);
        std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
        (void)std::vsnprintf(&text[0], text.size() + 1, format, again);
        va_end(again);
        return text;
    }

    std::string name_;
    sink_vector sinks_;
    level_enum level_ = level_enum::info;
};

} /* namespace RMM_COMPAT_RAPIDS_LOGGER */

#endif /* RMM_COMPAT_RAPIDS_LOGGER_LOGGER_HPP */
