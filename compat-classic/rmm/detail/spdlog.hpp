/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/spdlog.hpp
 *
 * spdlog's levels, which programs name to RMM's logger: rmm::logger().set_level(spdlog::level::trace).
 * They are spdlog's own where it is installed, as RMM included it until 24.12; else enumerators of
 * the same names, and classes of rapids_logger/logger.hpp under the names of its sinks.
 * RMM_COMPAT_HAS_SPDLOG is 1 or 0; a program that cannot use the spdlog of its include path defines
 * RMM_COMPAT_HAS_SPDLOG=0.
 */
#ifndef RMM_COMPAT_DETAIL_SPDLOG_HPP
#define RMM_COMPAT_DETAIL_SPDLOG_HPP

#if !defined(RMM_COMPAT_HAS_SPDLOG) && __has_include(<spdlog/common.h>)
#define RMM_COMPAT_HAS_SPDLOG 1
#elif !defined(RMM_COMPAT_HAS_SPDLOG)
#define RMM_COMPAT_HAS_SPDLOG 0
#endif
#if RMM_COMPAT_HAS_SPDLOG
#include <spdlog/common.h>
#else

#include <rapids_logger/logger.hpp>

#define SPDLOG_LEVEL_TRACE 0
#define SPDLOG_LEVEL_DEBUG 1
#define SPDLOG_LEVEL_INFO 2
#define SPDLOG_LEVEL_WARN 3
#define SPDLOG_LEVEL_ERROR 4
#define SPDLOG_LEVEL_CRITICAL 5
#define SPDLOG_LEVEL_OFF 6

namespace spdlog
{
namespace level
{
enum level_enum : int {
    trace = SPDLOG_LEVEL_TRACE,
    debug = SPDLOG_LEVEL_DEBUG,
    info = SPDLOG_LEVEL_INFO,
    warn = SPDLOG_LEVEL_WARN,
    err = SPDLOG_LEVEL_ERROR,
    critical = SPDLOG_LEVEL_CRITICAL,
    off = SPDLOG_LEVEL_OFF,
    n_levels
};
} /* namespace level */

using rapids_logger::sink_ptr;
namespace sinks
{
using rapids_logger::basic_file_sink_mt;
using rapids_logger::ostream_sink_mt;
using rapids_logger::sink;
using basic_file_sink_st = basic_file_sink_mt;
using null_sink_mt = rapids_logger::null_sink_mt;
using ostream_sink_st = ostream_sink_mt;
using stderr_sink_mt = rapids_logger::stderr_sink_mt;
using stderr_sink_st = stderr_sink_mt;
} /* namespace sinks */
} /* namespace spdlog */

#endif

#endif /* RMM_COMPAT_DETAIL_SPDLOG_HPP */
