/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/export.h
 *
 * Marks what the shared library exports and which results must be looked at; casts.
 */
#ifndef RMM_EXPORT_H
#define RMM_EXPORT_H

#if defined(__GNUC__)
#define RMM_API __attribute__((visibility("default")))
#define RMM_NODISCARD __attribute__((warn_unused_result))
#else
#define RMM_API
#define RMM_NODISCARD
#endif

/* For macros and inline functions: programs of C++ compile them with -Wold-style-cast. */
#ifdef __cplusplus
#define RMM_CAST(type, value) static_cast<type>(value)
#else
#define RMM_CAST(type, value) ((type)(value))
#endif

#endif /* RMM_EXPORT_H */
