/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rapids_logger/pattern.hpp
 *
 * Levels, and the lines that a pattern makes of a message.
 *
 * A flag is "%", then a width of at most 64 if it has one ("%8l" aligns right, "%-8l" left,
 * "%=8l" in the middle, "!" behind the width cuts), then a letter:
 *
 *   v  the message           n  the logger's name       %  a percent sign
 *   l  the level, "warning"  L  its letter, "W"
 *   t  the thread, gettid()  P  the process
 *   e  milliseconds          f  microseconds            F  nanoseconds, of the second
 *   E  seconds since 1970    z  offset from UTC, "+01:00"
 *   Y y C m d H I M S p r R T X D x a A b h B c         as strftime(3), local time
 *   ^ $ @ s g # !            nothing: colours, places in a source
 *
 * Other flags stand in the line as they are in the pattern.
 *
 * Threads: any thread.
 */
#ifndef RMM_COMPAT_RAPIDS_LOGGER_PATTERN_HPP
#define RMM_COMPAT_RAPIDS_LOGGER_PATTERN_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>

#include <sys/syscall.h>
#include <unistd.h>

#include <rapids_logger/log_levels.h>

#ifdef __GNUC__
#define RMM_COMPAT_RAPIDS_LOGGER rapids_logger __attribute__((visibility("default")))
#else
#define RMM_COMPAT_RAPIDS_LOGGER rapids_logger
#endif

namespace RMM_COMPAT_RAPIDS_LOGGER
{

enum class level_enum : std::int32_t {
    trace = RAPIDS_LOGGER_LOG_LEVEL_TRACE,
    debug = RAPIDS_LOGGER_LOG_LEVEL_DEBUG,
    info = RAPIDS_LOGGER_LOG_LEVEL_INFO,
    warn = RAPIDS_LOGGER_LOG_LEVEL_WARN,
    error = RAPIDS_LOGGER_LOG_LEVEL_ERROR,
    critical = RAPIDS_LOGGER_LOG_LEVEL_CRITICAL,
    off = RAPIDS_LOGGER_LOG_LEVEL_OFF,
    n_levels
};

inline const char *name_of(level_enum level)
{
    static const char *const names[] = {"trace", "debug",    "info", "warning",
                                        "error", "critical", "off"};

    return level >= level_enum::trace && level <= level_enum::off
               ? names[static_cast<std::size_t>(level)]
               : "unknown";
}

/** A message on its way to the sinks. */
struct log_record {
    level_enum level;
    const std::string &text;
    const std::string &logger;
    std::chrono::system_clock::time_point time;
};

namespace detail
{

constexpr std::size_t most_pad_width = 64;

/* What stands between "%" and the letter. */
struct padding {
    char side = '+'; /* '+' right, '-' left, '=' middle */
    std::size_t width = 0;
    bool cuts = false;
};

inline std::string padded(const std::string &text, const padding &pad)
{
    if (text.size() >= pad.width) {
        return pad.cuts ? text.substr(0, pad.width) : text;
    }
    const std::size_t missing = pad.width - text.size();
    const std::size_t left = pad.side == '-'   ? 0
                             : pad.side == '=' ? missing / 2
                                               : missing;

    return std::string(left, ' ') + text + std::string(missing - left, ' ');
}

/* From *next on, which is left at the letter. */
inline padding parse_padding(const std::string &pattern, std::size_t *next)
{
    std::size_t at = *next;
    padding pad;

    if (at < pattern.size() && (pattern[at] == '-' || pattern[at] == '=')) {
        pad.side = pattern[at++];
    }
    const std::size_t digits = at;
    for (; at < pattern.size() && pattern[at] >= '0' && pattern[at] <= '9'; at++) {
        pad.width = std::min(
            most_pad_width,
            pad.width * 10 + static_cast<std::size_t>(pattern[at] - '0'));
    }
    if (at == digits) { /* no width: "%-", "%=" are no padding */
        return padding();
    }
    if (at < pattern.size() && pattern[at] == '!') {
        pad.cuts = true;
        at++;
    }
    *next = at;
    return pad;
}

inline std::string date_text(char letter, std::time_t seconds)
{
    const char format[] = {'%', letter, '\0'};
    char text[64];
    std::tm local{};

    localtime_r(&seconds, &local);
    const std::size_t length = std::strftime(text, sizeof(text), format, &local);
    std::string date(text, length);
    if (letter == 'z' && length == 5) {
        date.insert(3, ":");
    }
    return date;
}

inline std::string digits_of(long long value, int width)
{
    char text[32];

    (void)std::snprintf(text, sizeof(text), "%0*lld", width, value);
    return text;
}

inline std::string fraction_text(char letter, std::chrono::nanoseconds part)
{
    const long long ns = part.count();

    return letter == 'e'   ? digits_of(ns / 1000000, 3)
           : letter == 'f' ? digits_of(ns / 1000, 6)
                           : digits_of(ns, 9);
}

/* False for a letter that is none. */
inline bool flag_text(char letter, const log_record &record, std::string *out)
{
    using std::chrono::seconds;
    const auto since = record.time.time_since_epoch();
    const auto whole = std::chrono::duration_cast<seconds>(since);

    switch (letter) {
    case 'v':
        *out = record.text;
        return true;
    case 'n':
        *out = record.logger;
        return true;
    case 'l':
        *out = name_of(record.level);
        return true;
    case 'L':
        *out = static_cast<char>(*name_of(record.level) - 'a' + 'A');
        return true;
    case 't':
        *out = std::to_string(syscall(SYS_gettid));
        return true;
    case 'P':
        *out = std::to_string(getpid());
        return true;
    case 'e':
    case 'f':
    case 'F':
        *out = fraction_text(
            letter,
            std::chrono::duration_cast<std::chrono::nanoseconds>(since - whole));
        return true;
    case 'E':
        *out = std::to_string(whole.count());
        return true;
    case '%':
        *out = "%";
        return true;
    default:
        break;
    }
    if (std::strchr("YyCmdHIMSprRTXDxaAbhBcz", letter) != nullptr) {
        *out = date_text(letter, static_cast<std::time_t>(whole.count()));
        return true;
    }
    out->clear();
    return std::strchr("^$@sg#!", letter) != nullptr;
}

} /* namespace detail */

/** The line of a message, with its newline. */
inline std::string formatted_line(const std::string &pattern, const log_record &record)
{
    std::string line, text;

    for (std::size_t i = 0; i < pattern.size(); i++) {
        std::size_t letter = i + 1;
        const detail::padding pad = detail::parse_padding(pattern, &letter);

        if (pattern[i] != '%') {
            line += pattern[i];
        } else if (
            letter < pattern.size() && pattern[letter] != '\0' &&
            detail::flag_text(pattern[letter], record, &text)) {
            line += detail::padded(text, pad);
            i = letter;
        } else {
            line += '%';
        }
    }
    return line + "\n";
}

} /* namespace RMM_COMPAT_RAPIDS_LOGGER */

#endif /* RMM_COMPAT_RAPIDS_LOGGER_PATTERN_HPP */
