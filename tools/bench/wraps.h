/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each adaptor over a resource, configured so that only its own overhead is measured: a limit
 * that is never reached, a callback that is never called, a log that no disk slows down.
 */
#ifndef RMM_TOOLS_BENCH_WRAPS_H
#define RMM_TOOLS_BENCH_WRAPS_H

#include <stdbool.h>

#include <rmm/resource.h>

/* False: see the last error. */
#define RMM_BENCH_WRAPS(X)                                                             \
    X(aligned)                                                                         \
    X(failure_callback)                                                                \
    X(limiting)                                                                        \
    X(logging)                                                                         \
    X(prefetch)                                                                        \
    X(statistics)                                                                      \
    X(thread_safe)                                                                     \
    X(tracking)                                                                        \
    X(stacks)

#define X(name) bool wrap_##name(rmm_resource_t *base, rmm_resource_t **out);
RMM_BENCH_WRAPS(X)
#undef X

#endif /* RMM_TOOLS_BENCH_WRAPS_H */
