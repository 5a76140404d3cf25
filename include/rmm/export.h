/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/export.h
 *
 * Marks what the shared library exports and which results must be looked at.
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

#endif /* RMM_EXPORT_H */
