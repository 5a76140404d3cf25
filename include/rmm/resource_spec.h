/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/resource_spec.h
 *
 * Creates resources from a text, for a configuration file, an option of a program or the
 * variable RMM_RESOURCE:
 *
 *   [adaptor[:size or time][:option]+...]type[:size[:size]][:option][/type...]
 *
 * for example "pool", "pool:50%", "pool:1GiB:8GiB" or "fixed_size:2MiB". The first adaptor
 * is the outermost. A size is in bytes, or has one of the units KiB, MiB, GiB, TiB (of 1024) or
 * kB, MB, GB, TB (of 1000), or is a share of the memory that is free on the device at the time
 * of the call, 1% to 100%. A time, which "logging" takes
 * (rmm_logging_options_t.flush_interval_ms), is a number with ms: "logging:500ms+pool";
 * "logging:auto_flush+pool" writes each row at once, "logging:pool_size+pool" with the size of
 * the pool. "pool_virtual:no_peer_access" and "async:1GiB:no_peer_access" keep their memory to
 * their own device (docs/several-gpus.md); "async:wait" synchronises once before it refuses a
 * request; "async_pinned:numa" has its memory on the NUMA node near the device,
 * "async_pinned:numa=1" on node 1. "pool:0:80%/managed" allocates from managed memory what the
 * pool refuses (rmm/fallback_adaptor.h); adaptors stand over both. "retry:500ms+async" and
 * "wait:2000ms+pool" try again and wait for so long, and without a time as
 * rmm_retry_options_t.timeout_ms and rmm_wait_options_t.timeout_ms say.
 * docs/defaults.md lists the types and adaptors, the sizes and the options that each takes.
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
 * Create the resources that @p spec names, on the current device.
 *
 * @param spec  one line, as RMM_RESOURCE has it
 * @param out   receives the outermost resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  out or spec is NULL, or the spec is malformed: the
 *                                   message says what is wrong with it
 *         and the statuses of the creators of its parts
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_resource_create_from_spec(const char *spec, rmm_resource_t **out);

/**
 * Is @p spec well-formed? Creates nothing and uses no device: for programs that check their
 * configuration early.
 *
 * @return RMM_OK, or RMM_ERR_INVALID_ARGUMENT with the reason as its message
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_resource_check_spec(const char *spec);

#ifdef __cplusplus
}
#endif

#endif /* RMM_RESOURCE_SPEC_H */
