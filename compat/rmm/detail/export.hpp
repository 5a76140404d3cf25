/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/export.hpp
 *
 * RMM's macros for visibility, and the C++ standard that these headers need.
 */
#ifndef RMM_COMPAT_DETAIL_EXPORT_HPP
#define RMM_COMPAT_DETAIL_EXPORT_HPP

#if defined(_MSVC_LANG) ? _MSVC_LANG < 201703L : __cplusplus < 201703L
#error "the RMM headers of rmm-c need C++17 or newer"
#include <rmm/needs_cxx17> /* is not there: the compiler stops, without further errors */
#endif

#ifdef __GNUC__
#define RMM_EXPORT __attribute__((visibility("default")))
#define RMM_HIDDEN __attribute__((visibility("hidden")))
#else
#define RMM_EXPORT
#define RMM_HIDDEN
#endif
#define RMM_NAMESPACE rmm RMM_EXPORT
#define RMM_CONSTEXPR_FRIEND constexpr friend

#endif /* RMM_COMPAT_DETAIL_EXPORT_HPP */
