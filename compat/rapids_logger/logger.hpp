/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rapids_logger/logger.hpp
 *
 * The part of RAPIDS' logger that is in RMM's interface: levels, sinks, patterns, and a
 * logger with printf-like functions, whose arguments may be std::string too.
 *
 * A sink writes lines. Their form is its pattern (pattern.hpp), which set_pattern() of a
 * logger gives to the sinks that it has; a sink without one writes "[time][level] message".
 *
 * Threads: any function, any thread, but for moves and the iterators of sink_vector; a sink
 * gets one call at a time.
 */
#ifndef RMM_COMPAT_RAPIDS_LOGGER_LOGGER_HPP
#define RMM_COMPAT_RAPIDS_LOGGER_LOGGER_HPP

#if __cplusplus < 201703L
#error "rapids_logger/logger.hpp needs C++17 or newer"
#include <rapids_logger/needs_cxx17> /* is not there: the compiler stops here */
#endif

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <rapids_logger/pattern.hpp>

namespace RMM_COMPAT_RAPIDS_LOGGER
{

/** Where a logger writes to. */
class sink
{
  public:
    virtual ~sink() = default;
    /** Whole lines, with their newlines. */
    virtual void write(std::string_view lines) = 0;
    virtual void flush() = 0;
    /** A message of a logger: a line of it, unless the sink takes messages. */
    virtual void message(const log_record &record)
    {
        write(line_of(record));
    }
    virtual void set_pattern(const std::string &pattern)
    {
        const std::lock_guard<std::mutex> guard(pattern_lock_);

        pattern_ = pattern;
    }

  protected:
    std::string line_of(const log_record &record) const
    {
        const std::lock_guard<std::mutex> guard(pattern_lock_);

        return formatted_line(pattern_, record);
    }

  private:
    mutable std::mutex pattern_lock_; /* protects pattern_ */
    std::string pattern_ = "[%Y-%m-%dT%T%z][%l] %v";
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

/* As of printf(). */
inline std::string formatted(const char *format, ...)
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

/** Passes lines to a function, with the level of each. */
class callback_sink_mt : public sink
{
  public:
    explicit callback_sink_mt(log_callback_t log, flush_callback_t flush = {})
        : log_(std::move(log)), flush_(std::move(flush))
    {
    }
    void write(std::string_view lines) override
    {
        call(level_enum::info, std::string(lines));
    }
    void message(const log_record &record) override
    {
        call(record.level, line_of(record));
    }
    void flush() override
    {
        const std::lock_guard<std::recursive_mutex> guard(lock_);

        if (flush_) {
            flush_();
        }
    }

  private:
    void call(level_enum level, const std::string &lines)
    {
        const std::lock_guard<std::recursive_mutex> guard(lock_);

        log_(static_cast<int>(level), lines.c_str());
    }

    std::recursive_mutex lock_; /* one call at a time; a function may log again */
    log_callback_t log_;
    flush_callback_t flush_;
};

/** The sinks of a logger. */
class sink_vector
{
  public:
    using Iterator = std::vector<sink_ptr>::iterator;
    using ConstIterator = std::vector<sink_ptr>::const_iterator;

    /** No other thread may change the list meanwhile. */
    Iterator begin()
    {
        return sinks_.begin();
    }
    Iterator end()
    {
        return sinks_.end();
    }
    ConstIterator begin() const
    {
        return sinks_.begin();
    }
    ConstIterator end() const
    {
        return sinks_.end();
    }
    ConstIterator cbegin() const
    {
        return sinks_.cbegin();
    }
    ConstIterator cend() const
    {
        return sinks_.cend();
    }
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
    using sink_vector = rapids_logger::sink_vector;

    explicit logger(std::string name, std::vector<sink_ptr> sinks = {})
        : name_(std::move(name))
    {
        replace_sinks(std::move(sinks));
    }
    /** The file is truncated. */
    logger(std::string name, const std::string &filename)
        : logger(
              std::move(name), {std::make_shared<basic_file_sink_mt>(filename, true)})
    {
    }
    logger(std::string name, std::ostream &stream)
        : logger(std::move(name), {std::make_shared<ostream_sink_mt>(stream)})
    {
    }
    /** No other thread may use either of the two. */
    logger(logger &&other) : logger(std::move(other.name_), other.sinks_.snapshot())
    {
        take_levels(other);
    }
    logger &operator=(logger &&other)
    {
        if (this != &other) {
            name_ = std::move(other.name_);
            replace_sinks(other.sinks_.snapshot());
            take_levels(other);
        }
        return *this;
    }
    logger(const logger &) = delete;
    logger &operator=(const logger &) = delete;
    virtual ~logger() = default;

    virtual void set_level(level_enum level)
    {
        level_ = level;
    }
    /** Of another enumeration with the same values: RMM's README of 25.02 has spdlog's here. */
    template <class Level, class = std::enable_if_t<std::is_enum<Level>::value>>
    void set_level(Level level)
    {
        set_level(static_cast<level_enum>(level));
    }
    virtual level_enum level() const
    {
        return level_;
    }
    /** Flush after each message of this level and worse; off, as at first: after none. */
    void flush_on(level_enum level)
    {
        flush_level_ = level;
    }
    level_enum flush_level() const
    {
        return flush_level_;
    }
    /** Of all sinks that the logger has now. */
    void set_pattern(const std::string &pattern)
    {
        for (const sink_ptr &sink : sinks_.snapshot()) {
            sink->set_pattern(pattern);
        }
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
    void
    log(level_enum level, const std::string &format, const First &first,
        const Arguments &...arguments)
    {
        if (should_log(level)) {
            pass_on(
                level,
                detail::formatted(format.c_str(), passed(first), passed(arguments)...));
        }
    }
    template <class... Arguments>
    void trace(const std::string &format, const Arguments &...arguments)
    {
        log(level_enum::trace, format, arguments...);
    }
    template <class... Arguments>
    void debug(const std::string &format, const Arguments &...arguments)
    {
        log(level_enum::debug, format, arguments...);
    }
    template <class... Arguments>
    void info(const std::string &format, const Arguments &...arguments)
    {
        log(level_enum::info, format, arguments...);
    }
    template <class... Arguments>
    void warn(const std::string &format, const Arguments &...arguments)
    {
        log(level_enum::warn, format, arguments...);
    }
    template <class... Arguments>
    void error(const std::string &format, const Arguments &...arguments)
    {
        log(level_enum::error, format, arguments...);
    }
    template <class... Arguments>
    void critical(const std::string &format, const Arguments &...arguments)
    {
        log(level_enum::critical, format, arguments...);
    }

  protected:
    /* Whatever the level is: a message that has passed another's filter. */
    void pass_on(level_enum level, const std::string &text)
    {
        const log_record record = {
            level, text, name_, std::chrono::system_clock::now()};
        const level_enum flush_level = flush_level_;

        for (const sink_ptr &sink : sinks_.snapshot()) {
            sink->message(record);
            if (level >= flush_level && flush_level < level_enum::off) {
                sink->flush();
            }
        }
    }

  private:
    void replace_sinks(std::vector<sink_ptr> sinks)
    {
        sinks_.clear();
        for (sink_ptr &sink : sinks) {
            sinks_.push_back(std::move(sink));
        }
    }
    void take_levels(const logger &other)
    {
        level_ = other.level_.load();
        flush_level_ = other.flush_level_.load();
    }
    /* As an argument of printf(). */
    static const char *passed(const std::string &text)
    {
        return text.c_str();
    }
    template <class T> static T passed(const T &value)
    {
        return value;
    }
    template <std::size_t N> static const char *passed(const char (&text)[N])
    {
        return text;
    }
    std::string name_;
    sink_vector sinks_;
    std::atomic<level_enum> level_{level_enum::info};
    std::atomic<level_enum> flush_level_{level_enum::off};
};

/** Another level until the end of the block. */
class log_level_setter
{
  public:
    log_level_setter(logger &logger, level_enum level)
        : logger_(logger), previous_(logger.level())
    {
        logger_.set_level(level);
    }
    log_level_setter(const log_level_setter &) = delete;
    log_level_setter &operator=(const log_level_setter &) = delete;
    ~log_level_setter()
    {
        logger_.set_level(previous_);
    }

  private:
    logger &logger_;
    level_enum previous_;
};

} /* namespace RMM_COMPAT_RAPIDS_LOGGER */

#endif /* RMM_COMPAT_RAPIDS_LOGGER_LOGGER_HPP */
