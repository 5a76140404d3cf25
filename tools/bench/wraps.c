/* SPDX-License-Identifier: Apache-2.0 */
/* The log is a file in memory, which /proc/self/fd names: it leaves nothing behind. */
#include "bench/wraps.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rmm/aligned_adaptor.h>
#include <rmm/failure_callback_adaptor.h>
#include <rmm/limiting_adaptor.h>
#include <rmm/logging_adaptor.h>
#include <rmm/prefetch_adaptor.h>
#include <rmm/statistics_adaptor.h>
#include <rmm/thread_safe_adaptor.h>
#include <rmm/tracking_adaptor.h>

#define ALIGNMENT_BYTES 4096
#define LIMIT_BYTES (UINT64_C(1) << 50)

bool wrap_aligned(rmm_resource_t *base, rmm_resource_t **out)
{
    rmm_aligned_options_t options = RMM_ALIGNED_OPTIONS_INIT;
    options.alignment_bytes = ALIGNMENT_BYTES;
    return rmm_aligned_adaptor_create(base, &options, out) == RMM_OK;
}

static bool give_up(size_t bytes, void *arg)
{
    (void)bytes;
    (void)arg;
    return false;
}

bool wrap_failure_callback(rmm_resource_t *base, rmm_resource_t **out)
{
    rmm_failure_callback_options_t options = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    options.callback = give_up;
    return rmm_failure_callback_adaptor_create(base, &options, out) == RMM_OK;
}

bool wrap_limiting(rmm_resource_t *base, rmm_resource_t **out)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;
    options.limit_bytes = LIMIT_BYTES;
    return rmm_limiting_adaptor_create(base, &options, out) == RMM_OK;
}

bool wrap_logging(rmm_resource_t *base, rmm_resource_t **out)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    char path[64];
    int file = memfd_create("rmm-bench-log", MFD_CLOEXEC);
    /* without it, -1 is no such file: the adaptor's error says so */
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    options.path = path;
    bool made = rmm_logging_adaptor_create(base, &options, out) == RMM_OK;
    if (file >= 0) {
        close(file);
    }
    return made;
}

bool wrap_prefetch(rmm_resource_t *base, rmm_resource_t **out)
{
    return rmm_prefetch_adaptor_create(base, NULL, out) == RMM_OK;
}

bool wrap_statistics(rmm_resource_t *base, rmm_resource_t **out)
{
    return rmm_statistics_adaptor_create(base, NULL, out) == RMM_OK;
}

bool wrap_thread_safe(rmm_resource_t *base, rmm_resource_t **out)
{
    return rmm_thread_safe_adaptor_create(base, NULL, out) == RMM_OK;
}

bool wrap_tracking(rmm_resource_t *base, rmm_resource_t **out)
{
    return rmm_tracking_adaptor_create(base, NULL, out) == RMM_OK;
}

bool wrap_stacks(rmm_resource_t *base, rmm_resource_t **out)
{
    rmm_tracking_options_t options = RMM_TRACKING_OPTIONS_INIT;
    options.capture_stacks = true;
    return rmm_tracking_adaptor_create(base, &options, out) == RMM_OK;
}
