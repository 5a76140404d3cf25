/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/logger_macros.hpp
 *
 * Messages of the program to RMM's logger, which compile to nothing below the level
 * RMM_LOG_ACTIVE_LEVEL: RMM_LOG_INFO("read %zu bytes", bytes). Include rmm/logger.hpp.
 */
#ifndef RMM_COMPAT_LOGGER_MACROS_HPP
#define RMM_COMPAT_LOGGER_MACROS_HPP

#include <rapids_logger/log_levels.h>
#include <rmm/detail/era.hpp>

#if RMM_COMPAT_CLASSIC
#include <rmm/detail/spdlog.hpp>
#endif

#if RMM_COMPAT_CLASSIC && !defined(RMM_LOG_ACTIVE_LEVEL) && defined(SPDLOG_ACTIVE_LEVEL)
#define RMM_LOG_ACTIVE_LEVEL SPDLOG_ACTIVE_LEVEL /* until RMM 24.12 */
#endif
#ifndef RMM_LOG_ACTIVE_LEVEL
#define RMM_LOG_ACTIVE_LEVEL RAPIDS_LOGGER_LOG_LEVEL_INFO
#endif

/* Since RMM 26.10. */
#define RMM_LOGGER_CALL(logger, level, ...) (logger).log(level, __VA_ARGS__)

#if RMM_COMPAT_CLASSIC
#define RMM_COMPAT_LOG_FUNCTION rmm::logger().log_of_any_version
#else
#define RMM_COMPAT_LOG_FUNCTION rmm::default_logger().log
#endif
#define RMM_COMPAT_LOG(level, ...)                                                     \
    do {                                                                               \
        if (RAPIDS_LOGGER_LOG_LEVEL_##level >= RMM_LOG_ACTIVE_LEVEL) {                 \
            RMM_COMPAT_LOG_FUNCTION(                                                   \
                static_cast<rapids_logger::level_enum>(                                \
                    RAPIDS_LOGGER_LOG_LEVEL_##level),                                  \
                __VA_ARGS__);                                                          \
        }                                                                              \
    } while (0)

#define RMM_LOG_TRACE(...) RMM_COMPAT_LOG(TRACE, __VA_ARGS__)
#define RMM_LOG_DEBUG(...) RMM_COMPAT_LOG(DEBUG, __VA_ARGS__)
#define RMM_LOG_INFO(...) RMM_COMPAT_LOG(INFO, __VA_ARGS__)
#define RMM_LOG_WARN(...) RMM_COMPAT_LOG(WARN, __VA_ARGS__)
#define RMM_LOG_ERROR(...) RMM_COMPAT_LOG(ERROR, __VA_ARGS__)
#define RMM_LOG_CRITICAL(...) RMM_COMPAT_LOG(CRITICAL, __VA_ARGS__)

#endif /* RMM_COMPAT_LOGGER_MACROS_HPP */
