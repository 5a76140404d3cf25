/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/version.h
 *
 * The version of the headers (macros) and of the running library (functions).
 */
#ifndef RMM_VERSION_H
#define RMM_VERSION_H

#include <stdint.h>

#include <rmm/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RMM_C_VERSION_MAJOR 0
#define RMM_C_VERSION_MINOR 1
#define RMM_C_VERSION_PATCH 0

/** The version as a number: major * 10000 + minor * 100 + patch of the running library. */
RMM_API uint32_t rmm_version(void);

/** The version of the running library as text, "0.1.0"; static. */
RMM_API const char *rmm_version_string(void);

#ifdef __cplusplus
}
#endif

#endif /* RMM_VERSION_H */
