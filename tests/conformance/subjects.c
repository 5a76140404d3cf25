/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How each subject is made. Options are those of a first use: small bins, no limits that
 * the cases could meet.
 */
#include "conformance/subjects.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/sim.h>

#include "driver/driver.h"
#include "harness/adaptors.h"
#include "harness/harness.h"
#include "pool/engine_impl.h"
#include "resources/pool_resource.h"

#define WITH_DEFAULTS(type, largest)                                                   \
    static rmm_status_t build_##type(rmm_resource_t *upstream, rmm_resource_t **out)   \
    {                                                                                  \
        return rmm_##type##_resource_create(upstream, NULL, out);                      \
    }
#include "conformance/subjects.def"

static rmm_status_t build_over(
    rmm_status_t (*base)(rmm_resource_t **),
    rmm_status_t (*build)(rmm_resource_t *, rmm_resource_t **), rmm_resource_t **out)
{
    rmm_resource_t *upstream = NULL;
    rmm_status_t status = base(&upstream);

    if (status == RMM_OK) {
        status = build(upstream, out);
    }
    rmm_resource_release(upstream);
    return status;
}

static rmm_status_t make_pool(rmm_resource_t **out)
{
    return build_over(rmm_cuda_resource_create, build_pool, out);
}

static rmm_status_t make_auto(rmm_resource_t **out)
{
    return rmm_auto_resource_create(NULL, out);
}

static rmm_status_t make_pool_virtual(rmm_resource_t **out)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;

    options.flags = RMM_POOL_VIRTUAL;
    return rmm_pool_resource_create(NULL, &options, out);
}

/* As if several streams had used it, from the first request on (lib/pool/streams.c). */
static rmm_status_t share(rmm_status_t status, rmm_resource_t **pool)
{
    if (status == RMM_OK) {
        engine_t *engine = pool_from_base(*pool)->engine;

        rmm__mutex_lock(rmm__engine_mutex(engine));
        rmm__engine_single_stream_end_locked(engine, true);
        rmm__mutex_unlock(rmm__engine_mutex(engine));
    }
    return status;
}

static rmm_status_t build_pool_shared(rmm_resource_t *upstream, rmm_resource_t **out)
{
    return share(build_pool(upstream, out), out);
}

static rmm_status_t make_pool_virtual_shared(rmm_resource_t **out)
{
    return share(make_pool_virtual(out), out);
}

static rmm_status_t build_binning(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_binning_options_t options = RMM_BINNING_OPTIONS_INIT;

    options.min_exponent = 14;
    options.max_exponent = 18;
    return rmm_binning_resource_create(upstream, &options, out);
}

static rmm_status_t make_async(rmm_resource_t **out)
{
    return rmm_async_resource_create(NULL, out);
}

static rmm_status_t make_async_at(uint32_t location, rmm_resource_t **out)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;

    options.location = location;
    return rmm_async_resource_create(&options, out);
}

static rmm_status_t make_async_pinned(rmm_resource_t **out)
{
    return make_async_at(RMM_ASYNC_ON_HOST, out);
}

static rmm_status_t make_async_host_numa(rmm_resource_t **out)
{
    return make_async_at(RMM_ASYNC_ON_NODE, out); /* node 0: every machine has it */
}

/* It alone keeps the pool that it looks at. */
static rmm_status_t make_async_view(rmm_resource_t **out)
{
    rmm_resource_t *async = NULL;
    rmm_status_t status = make_async(&async);

    if (status == RMM_OK) {
        status =
            rmm_async_view_resource_create(rmm_async_resource_pool_handle(async), out);
    }
    rmm_resource_release(async);
    return status;
}

/* Leaves half of the device to others, so that some blocks are parted. */
static rmm_status_t make_sam_headroom(rmm_resource_t **out)
{
    rmm_sam_headroom_options_t options = RMM_SAM_HEADROOM_OPTIONS_INIT;

    options.headroom_bytes = 40 * GIB;
    return rmm_sam_headroom_resource_create(&options, out);
}

/* --- adaptors ----------------------------------------------------------------------- */

static rmm_status_t build_aligned(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_aligned_options_t options = RMM_ALIGNED_OPTIONS_INIT;

    options.alignment_bytes = 4096; /* as RMM's own tests */
    options.threshold_bytes = 65536;
    return rmm_aligned_adaptor_create(upstream, &options, out);
}

static bool never_retry(size_t bytes, void *argument)
{
    (void)bytes;
    (void)argument;
    return false;
}

static rmm_status_t
build_failure_callback(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_failure_callback_options_t options = RMM_FAILURE_CALLBACK_OPTIONS_INIT;

    options.callback = never_retry;
    return rmm_failure_callback_adaptor_create(upstream, &options, out);
}

static rmm_status_t build_limiting(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;

    options.limit_bytes = 8 * GIB; /* all threads' largest blocks at once */
    return rmm_limiting_adaptor_create(upstream, &options, out);
}

static rmm_status_t make_limited(rmm_resource_t **out)
{
    return build_over(rmm_cuda_resource_create, build_limiting, out);
}

/* Small blocks of the one, large ones and many of the other. */
static rmm_status_t build_little(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;

    options.limit_bytes = MIB / 2;
    return rmm_limiting_adaptor_create(upstream, &options, out);
}

static rmm_status_t make_little(rmm_resource_t **out)
{
    return build_over(rmm_cuda_resource_create, build_little, out);
}

static rmm_status_t build_fallback(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_fallback_options_t options = RMM_FALLBACK_OPTIONS_INIT;
    rmm_status_t status = rmm_managed_resource_create(&options.alternate);

    if (status == RMM_OK) {
        status = rmm_fallback_adaptor_create(upstream, &options, out);
    }
    rmm_resource_release(options.alternate);
    return status;
}

static rmm_status_t build_retry(rmm_resource_t *upstream, rmm_resource_t **out)
{
    return rmm_retry_adaptor_create(upstream, NULL, out);
}

static rmm_status_t build_wait(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_wait_options_t options = RMM_WAIT_OPTIONS_INIT;

    options.timeout_ms = 20; /* for what the cases refuse */
    return rmm_wait_adaptor_create(upstream, &options, out);
}

static rmm_status_t build_prefetch(rmm_resource_t *upstream, rmm_resource_t **out)
{
    return rmm_prefetch_adaptor_create(upstream, NULL, out);
}

static rmm_status_t build_tracking(rmm_resource_t *upstream, rmm_resource_t **out)
{
    return rmm_tracking_adaptor_create(upstream, NULL, out);
}

/* Binning over a pool over cuda. */
static rmm_status_t make_binning_over_pool(rmm_resource_t **out)
{
    return build_over(make_pool, build_binning, out);
}

static rmm_status_t make_limited_stack(rmm_resource_t **out)
{
    return build_over(make_binning_over_pool, build_limiting, out);
}

/* --- a program's own memory: the driver's, requested by hand ------------------------ */

static rmm_status_t
program_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    int error;

    (void)stream;
    (void)payload;
    error = driver->mem_alloc(ptr_out, bytes);
    return error == RMM_DRIVER_OK ? RMM_OK
                                  : rmm__driver_error(driver, error, "mem_alloc");
}

/* It waits for the device, so the stream does not matter. */
static void program_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    rmm_status_t status;

    (void)bytes;
    (void)stream;
    (void)payload;
    (void)rmm__driver(&status)->mem_free(ptr);
}

static rmm_status_t make_callback(rmm_resource_t **out)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;

    options.alloc = program_alloc;
    options.dealloc = program_dealloc;
    return rmm_callback_resource_create(&options, out);
}

/* --- the same as a custom resource, with functions of both kinds ---------------------- */

static rmm_status_t
custom_alloc_sync(size_t bytes, size_t align, void *payload, void **ptr_out)
{
    (void)align; /* what the driver does not align to is refused */
    return program_alloc(bytes, NULL, payload, ptr_out);
}

static void custom_dealloc_sync(void *ptr, size_t bytes, size_t align, void *payload)
{
    (void)align;
    program_dealloc(ptr, bytes, NULL, payload);
}

static rmm_status_t custom_alloc(
    size_t bytes, size_t align, rmm_stream_t stream, void *payload, void **ptr_out)
{
    (void)stream;
    return custom_alloc_sync(bytes, align, payload, ptr_out);
}

static void custom_dealloc(
    void *ptr, size_t bytes, size_t align, rmm_stream_t stream, void *payload)
{
    (void)stream;
    custom_dealloc_sync(ptr, bytes, align, payload);
}

static rmm_status_t make_custom(rmm_resource_t **out)
{
    rmm_custom_resource_ops_t ops = RMM_CUSTOM_RESOURCE_OPS_INIT;

    ops.alloc = custom_alloc;
    ops.dealloc = custom_dealloc;
    ops.alloc_sync = custom_alloc_sync;
    ops.dealloc_sync = custom_dealloc_sync;
    return rmm_custom_resource_create(&ops, NULL, out);
}

/* --- the table ---------------------------------------------------------------------- */

const subject_t subjects[] = {
#define SUBJECT(name, type, largest, base, build) {#name, #type, largest, base, build},
#define WITH_DEFAULTS(type, largest)                                                   \
    {#type, #type, largest, rmm_cuda_resource_create, build_##type},
#include "conformance/subjects.def"
#define PLAIN(word) {#word, #word, UNLIMITED, rmm_##word##_resource_create, NULL},
#include "device/spec_kinds.def"
};

const size_t subject_count = sizeof(subjects) / sizeof(subjects[0]);

const subject_t *subject_of_arguments(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    bool list = strcmp(name, "--list") == 0;
    bool help = strcmp(name, "--help") == 0;

    for (size_t i = 0; i < subject_count; i++) {
        if (strcmp(subjects[i].name, name) == 0) {
            harness_own_arguments(1);
            return &subjects[i];
        }
        if (list) {
            puts(subjects[i].name);
        }
    }
    if (!list) {
        fprintf(
            help ? stdout : stderr,
            "usage: %s SUBJECT [--list | --help | CASE...]; --list alone prints "
            "the subjects\n",
            argv[0]);
    }
    exit(list || help ? EXIT_SUCCESS : 2);
}

rmm_status_t subject_make(const subject_t *subject, rmm_resource_t **out)
{
    return subject->build == NULL ? subject->base(out)
                                  : build_over(subject->base, subject->build, out);
}

int subject_look_at_machine(const subject_t *subject)
{
    rmm_resource_t *mr = NULL;
    rmm_status_t status;

    if (rmm__driver(&status) == NULL) {
        printf("skipped: %s\n", rmm_last_error_message());
        return status == RMM_ERR_NO_DEVICE ? SUBJECT_SKIPPED : 1;
    }
    status = subject_make(subject, &mr);
    rmm_resource_release(mr);
    if (status == RMM_ERR_UNSUPPORTED && !rmm_sim_active()) {
        printf("skipped: %s\n", rmm_last_error_message());
        return SUBJECT_SKIPPED;
    }
    return 0;
}
