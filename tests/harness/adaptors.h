/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builders of adaptors, all of one function type, with the options of a first use. The
 * adaptor retains its upstream.
 */
#ifndef RMM_TESTS_HARNESS_ADAPTORS_H
#define RMM_TESTS_HARNESS_ADAPTORS_H

#include <stdbool.h>
#include <stddef.h>

#include <rmm/rmm.h>

static inline void drop_rows(const char *rows, size_t length, void *arg)
{
    (void)rows;
    (void)length;
    (void)arg;
}

static inline rmm_status_t build_logging(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;

    options.sink = drop_rows;
    return rmm_logging_adaptor_create(upstream, &options, out);
}

static inline rmm_status_t
build_statistics(rmm_resource_t *upstream, rmm_resource_t **out)
{
    return rmm_statistics_adaptor_create(upstream, NULL, out);
}

static inline rmm_status_t
build_thread_safe(rmm_resource_t *upstream, rmm_resource_t **out)
{
    return rmm_thread_safe_adaptor_create(upstream, NULL, out);
}

static inline rmm_status_t
build_tracking_stacks(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_tracking_options_t options = RMM_TRACKING_OPTIONS_INIT;

    options.capture_stacks = true;
    return rmm_tracking_adaptor_create(upstream, &options, out);
}

#endif /* RMM_TESTS_HARNESS_ADAPTORS_H */
