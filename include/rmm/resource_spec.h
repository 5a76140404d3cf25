/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/resource_spec.h
 *
 * Resources said in words, so that a configuration file, an option of a program or the
 * variable RMM_RESOURCE can choose one:
 *
 *   [adaptor[:size]+...]type[:size[:size]]
 *
 * for example "pool", "pool:50%", "pool:1GiB:8GiB" or "fixed_size:2MiB". What is written
 * first is outermost. A size is in bytes, or has one of the units KiB, MiB, GiB, TiB, or
 * is a part of the memory that is free on the device at the time of the call, 1% to 100%.
 * docs/defaults.md lists the words and the sizes that each takes.
 *
 * Lifetime, threads: as rmm/resource.h.
 */
#ifndef RMM_RESOURCE_SPEC_H
#define RMM_RESOURCE_SPEC_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Create what @p spec says, on the current device.
 *
 * @param spec  as above
 * @param out   receives the outermost resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  out or spec is NULL, or the spec is malformed: the
 *                                   message says what is wrong with it
 *         and what the creators of its parts answer
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_resource_create_from_spec(const char *spec, rmm_resource_t **out);

/**
 * Is @p spec one? Creates nothing and asks no device: for programs that read it before they
 * need it.
 *
 * @return RMM_OK, or RMM_ERR_INVALID_ARGUMENT with the reason as its message
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_resource_check_spec(const char *spec);

#ifdef __cplusplus
}
#endif

#endif /* RMM_RESOURCE_SPEC_H */
