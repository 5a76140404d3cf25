/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/format.hpp
 *
 * Sizes and streams as text, of RMM 24.12 to 26.04.
 */
#ifndef RMM_COMPAT_DETAIL_FORMAT_HPP
#define RMM_COMPAT_DETAIL_FORMAT_HPP

#include <cstddef>
#include <sstream>
#include <string>

#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/export.hpp>

namespace RMM_NAMESPACE
{
namespace detail
{

/* 1536: "1.500000 KiB" */
inline std::string format_bytes(std::size_t value)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    auto size = static_cast<double>(value);
    std::size_t unit = 0;

    for (; size > 1024; size /= 1024) {
        unit++;
    }
    return std::to_string(size) + ' ' + units[unit];
}

inline std::string format_stream(cuda_stream_view stream)
{
    std::ostringstream text;

    text << stream;
    return text.str();
}

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DETAIL_FORMAT_HPP */
