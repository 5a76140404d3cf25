/* SPDX-License-Identifier: Apache-2.0 */
/* RMM's log as programs for 0.16 to 24.12 use it, by spdlog's names and messages with braces, and
 * as those for 25.02 and newer do. */
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#include <cstdint>
#include <sstream>
#include <string>

#if __has_include(<spdlog/common.h>)
#define FMT_HEADER_ONLY /* then the sinks come with rmm/logger.hpp */
#endif
#include <rmm/detail/logging_assert.hpp>
#include <rmm/detail/nvtx/ranges.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/logging_resource_adaptor.hpp>

namespace
{

/* The messages that are logged until the end of the block. */
class captured
{
  public:
    captured() : level_(rmm::logger().level())
    {
        rmm::default_logger().sinks().push_back(
            std::make_shared<rapids_logger::ostream_sink_mt>(out_));
        rmm::default_logger().set_pattern("%l %v");
    }
    captured(const captured &) = delete;
    captured &operator=(const captured &) = delete;
    ~captured()
    {
        rmm::default_logger().sinks().pop_back();
        rmm::logger().set_level(level_);
    }
    std::string text() const
    {
        return out_.str();
    }

  private:
    std::ostringstream out_;
    spdlog::level::level_enum level_;
};

struct printable {
    int value;

    friend std::ostream &operator<<(std::ostream &out, const printable &self)
    {
        return out << '<' << self.value << '>';
    }
};

using rmm::detail::brace_formatted;

} /* namespace */

CASE(the_level_is_set_by_a_name_of_spdlog)
{
    const captured log;

    rmm::logger().set_level(spdlog::level::trace);
    CHECK(rmm::logger().level() == spdlog::level::trace);
    CHECK(rmm::default_logger().level() == rapids_logger::level_enum::trace);
    rmm::logger().set_level(spdlog::level::err);
    CHECK(!rmm::logger().should_log(spdlog::level::warn));
    rmm::default_logger().set_level(spdlog::level::info); /* README of RMM 25.02 */
    CHECK(rmm::default_logger().level() == rapids_logger::level_enum::info);
    rmm::default_logger().set_level(rmm::level_enum::warn); /* RMM 25.02 */
    CHECK(rmm::logger().level() == spdlog::level::warn);
    rmm::logger().flush_on(spdlog::level::critical);
    CHECK(rmm::logger().flush_level() == spdlog::level::critical);
    rmm::logger().flush_on(spdlog::level::off);
}

CASE(messages_have_fields_in_braces)
{
    const captured log;

    rmm::logger().set_level(spdlog::level::trace);
    rmm::logger().info("{} of {} bytes", 7, std::string("100"));
    rmm::logger().warn("no field: {} %d");
    rmm::logger().log(spdlog::level::info, "------ Start of Benchmark -----");
    rmm::logger().log(spdlog::level::err, "{}", printable{3});
    rmm::logger().trace("t");
    rmm::logger().debug("d");
    rmm::logger().error("e");
    rmm::logger().critical("c");
    rmm::logger().flush();
    CHECK(
        log.text() == "info 7 of 100 bytes\n"
                      "warning no field: {} %d\n"
                      "info ------ Start of Benchmark -----\n"
                      "error <3>\n"
                      "trace t\ndebug d\nerror e\ncritical c\n");
}

CASE(macros_take_both_styles)
{
    const captured log;

    rmm::logger().set_level(spdlog::level::info);
    RMM_LOG_INFO("[A][Stream {}][Upstream {}B]", 1, std::size_t(4096));
    RMM_LOG_WARN("read %zu bytes of %s", std::size_t(3), std::string("a file"));
    RMM_LOG_ERROR("all of it");
    RMM_LOG_ERROR("100%");
    RMM_LOG_CRITICAL("{}", printable{4});
    RMM_LOG_DEBUG("not compiled: %d", 1);
    CHECK(
        log.text() == "info [A][Stream 1][Upstream 4096B]\n"
                      "warning read 3 bytes of a file\n"
                      "error all of it\nerror 100%\ncritical <4>\n");
}

CASE(fields_are_those_of_fmt)
{
    CHECK(brace_formatted("{1}{0}{1}", 1, 2) == "212");
    CHECK(brace_formatted("{{}} {}", 1) == "{} 1");
    CHECK(brace_formatted("{:>4}|{:<4}|{:04}|{:+}", 1, 2, 3, 4) == "   1|2   |0003|+4");
    CHECK(brace_formatted("{:x} {:#X} {:o}", 255, 255U, 8) == "ff 0XFF 10");
    CHECK(
        brace_formatted("{} {} {:.2f} {:.3}", 0.1, 1.0, 2.0 / 3, 1e10) ==
        "0.1 1 0.67 1e+10");
    CHECK(brace_formatted("{} {} {}", true, 'c', std::int8_t(-5)) == "true c -5");
    CHECK(
        brace_formatted("{}|{:6}|{:>6}|{:.2}", "ab", "ab", "ab", "abc") ==
        "ab|ab    |    ab|ab");
    CHECK(brace_formatted("{}", static_cast<void *>(nullptr)) == "0");
    CHECK(
        brace_formatted("{} {}", UINT64_MAX, INT64_MIN) ==
        "18446744073709551615 -9223372036854775808");
}

CASE(a_message_never_fails)
{
    const char *none = nullptr;

    CHECK(brace_formatted("{} {}", 1) == "1 {}");
    CHECK(brace_formatted("{9} {x} {", 1) == "{9} {x} {");
    CHECK(brace_formatted("}{", 1) == "}{");
    CHECK(brace_formatted("{:1000000000}", 1) == "1");
    CHECK(brace_formatted("{:%n}{:s}", 1, 2) == "12");
    CHECK(brace_formatted("{99999999999999999999}", 1) == "{99999999999999999999}");
    CHECK(brace_formatted("{}", none) == "(null)");
    CHECK(brace_formatted("", 1).empty());
}

CASE(the_file_of_the_log_is_named_by_the_environment)
{
    CHECK(unsetenv("RMM_DEBUG_LOG_FILE") == 0);
    CHECK(rmm::detail::default_log_filename() == "rmm_log.txt");
    CHECK(setenv("RMM_DEBUG_LOG_FILE", "other.txt", 1) == 0);
    CHECK(rmm::detail::default_log_filename() == "other.txt");
    CHECK(unsetenv("RMM_DEBUG_LOG_FILE") == 0);
}

CASE(assertions_and_ranges_compile)
{
    const rmm::scoped_range range{"custom_name"};

    RMM_FUNC_RANGE();
    RMM_LOGGING_ASSERT(1 + 1 == 2);
}

CASE(rows_go_to_sinks_of_spdlog)
{
    std::ostringstream one, two;
    rmm::mr::cuda_memory_resource cuda;
    {
        rmm::mr::logging_resource_adaptor<rmm::mr::cuda_memory_resource> mr{
            &cuda,
            {std::make_shared<spdlog::sinks::ostream_sink_mt>(one),
             std::make_shared<spdlog::sinks::ostream_sink_mt>(two)}};
        mr.deallocate(mr.allocate(100), 100);
        mr.flush();
    }
    CHECK(one.str() == two.str());
    CHECK(one.str().find("Thread,Time,Action,Pointer,Size,Stream\n") == 0);
    CHECK(one.str().find(",allocate,0x") != std::string::npos);
    CHECK(one.str().find(",free,0x") != std::string::npos);
}

CASE(messages_go_to_sinks_of_spdlog)
{
    const captured log;
    std::ostringstream out;
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_st>(out);

    sink->set_pattern("%l %v");
    rmm::logger().set_level(spdlog::level::info);
    rmm::logger().sinks().push_back(sink);
    rmm::logger().info("{} message", 1);
    RMM_LOG_DEBUG("none");
    rmm::logger().sinks().pop_back();
    CHECK(out.str() == "info 1 message\n");
}

#if RMM_COMPAT_HAS_SPDLOG
CASE(macros_of_spdlog_take_the_logger)
{
    const captured log;

    rmm::logger().set_level(spdlog::level::info);
    SPDLOG_LOGGER_INFO(&rmm::logger(), "{} more", 1);
    CHECK(log.text() == "info 1 more\n");
}
#endif
