/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/spdlog_sink.hpp
 *
 * A sink of spdlog as one of these headers, for messages and for rows of a log, which need the pattern
 * "%v": they have a time and a thread. Nothing without spdlog.
 */
#ifndef RMM_COMPAT_DETAIL_SPDLOG_SINK_HPP
#define RMM_COMPAT_DETAIL_SPDLOG_SINK_HPP

#include <rmm/detail/spdlog.hpp>
#if RMM_COMPAT_HAS_SPDLOG

#include <string>
#include <string_view>
#include <utility>

#include <rapids_logger/logger.hpp>
#include <rmm/detail/export.hpp>
#include <spdlog/details/log_msg.h>
#include <spdlog/sinks/sink.h>
/* For programs, as RMM's; but what they use of fmt has to be linked unless the program says this. */
#if defined(FMT_HEADER_ONLY) || defined(SPDLOG_COMPILED_LIB)
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#endif

namespace RMM_NAMESPACE
{
namespace detail
{

/* Threads: as the sink. */
class spdlog_sink : public rapids_logger::sink
{
  public:
    explicit spdlog_sink(spdlog::sink_ptr wrapped) : sink_(std::move(wrapped))
    {
    }
    void message(const rapids_logger::log_record &record) override
    {
        log(record.logger, static_cast<spdlog::level::level_enum>(record.level),
            record.text);
    }
    void write(std::string_view lines) override
    {
        for (std::size_t end; !lines.empty(); lines.remove_prefix(end)) {
            const std::size_t newline = lines.find('\n');

            log("RMM", spdlog::level::info, lines.substr(0, newline));
            end = newline == std::string_view::npos ? lines.size() : newline + 1;
        }
    }
    void set_pattern(const std::string &pattern) override
    {
        sink_->set_pattern(pattern);
    }
    void flush() override
    {
        sink_->flush();
    }

  private:
    void
    log(std::string_view name, spdlog::level::level_enum level, std::string_view text)
    {
        const spdlog::string_view_t logger(name.data(), name.size());
        const spdlog::string_view_t line(text.data(), text.size());

        if (sink_->should_log(level)) {
            sink_->log(spdlog::details::log_msg(logger, level, line));
        }
    }

    spdlog::sink_ptr sink_;
};

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif
#endif /* RMM_COMPAT_DETAIL_SPDLOG_SINK_HPP */
