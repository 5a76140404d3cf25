/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions of `pool`: its options, and what a tool that checks each access makes
 * of them. The resource behind them is in pool_life.c and pool_requests.c.
 */
#include "resources/pool_resource.h"

#include <rmm/cuda_resource.h>
#include <rmm/pool_resource.h>

#include <inttypes.h>

#include "base/annotate.h"
#include "core/options.h"
#include "log/log.h"

static const rmm_resource_ops_t pool_ops = RMM_POOL_OPS("pool");

/* Up to whole units; what does not fit becomes the largest that does. */
static uint64_t whole_units(uint64_t bytes)
{
    return bytes > UINT64_MAX - RMM_BLOCKS_UNIT
               ? UINT64_MAX / RMM_BLOCKS_UNIT * RMM_BLOCKS_UNIT
               : (bytes + RMM_BLOCKS_UNIT - 1) / RMM_BLOCKS_UNIT * RMM_BLOCKS_UNIT;
}

static rmm_status_t check_options(rmm_pool_options_t *options)
{
    if (options->initial_bytes > PTRDIFF_MAX) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY,
            "initial_bytes %" PRIu64 " is more than any device has",
            options->initial_bytes);
    }
    options->initial_bytes = whole_units(options->initial_bytes);
    options->maximum_bytes =
        whole_units(options->maximum_bytes != 0 ? options->maximum_bytes : UINT64_MAX);
    if (options->initial_bytes > options->maximum_bytes) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "initial_bytes %" PRIu64 " is more than maximum_bytes %" PRIu64,
            options->initial_bytes, options->maximum_bytes);
    }
    return RMM_OK;
}

static rmm_status_t check_flags(const rmm_resource_t *upstream, uint64_t flags)
{
    const uint64_t peer_flags = RMM_POOL_PEER_ACCESS | RMM_POOL_NO_PEER_ACCESS;
    bool is_virtual = (flags & RMM_POOL_VIRTUAL) != 0;

    RMM_CHECK_ARG(upstream != NULL || is_virtual, "upstream is NULL");
    if ((flags & ~(RMM_POOL_VIRTUAL | RMM_POOL_EXPORTABLE | peer_flags)) != 0) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "flags %#" PRIx64 " has a bit that is not one of RMM_POOL_*", flags);
    }
    if (upstream != NULL && is_virtual) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "RMM_POOL_VIRTUAL maps the device's own memory: pass NULL for upstream, or "
            "leave the flag out");
    }
    if (!is_virtual && (flags & peer_flags) != 0) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "%s needs RMM_POOL_VIRTUAL: who may use memory of an upstream is the "
            "upstream's affair, and for memory of cudaMalloc() that of "
            "cudaDeviceEnablePeerAccess()",
            (flags & RMM_POOL_PEER_ACCESS) != 0 ? "RMM_POOL_PEER_ACCESS"
                                                : "RMM_POOL_NO_PEER_ACCESS");
    }
    RMM_CHECK_ARG(
        is_virtual || (flags & RMM_POOL_EXPORTABLE) == 0,
        "RMM_POOL_EXPORTABLE needs RMM_POOL_VIRTUAL: other processes map its pieces");
    RMM_CHECK_ARG(
        (flags & peer_flags) != peer_flags,
        "RMM_POOL_PEER_ACCESS and RMM_POOL_NO_PEER_ACCESS exclude each other");
    return RMM_OK;
}

/*
 * Tools refuse memory that is mapped. So while one listens, a virtual pool takes chunks of
 * cudaMalloc() instead; not one whose memory peers or other processes use, because they could
 * not.
 * *upstream_out: the caller's own reference, or NULL.
 */
static rmm_status_t
replace_range(rmm_pool_options_t *opts, rmm_resource_t **upstream_out)
{
    static atomic_bool is_logged;
    const rmm_driver_t *driver;
    int device;
    rmm_status_t status;

    *upstream_out = NULL;
    if ((opts->flags & RMM_POOL_VIRTUAL) == 0) {
        return RMM_OK;
    }
    status = rmm__driver_here(&driver, &device);
    if (status != RMM_OK || !rmm__annotate_open(device)) {
        return status;
    }
    if ((opts->flags & (RMM_POOL_PEER_ACCESS | RMM_POOL_EXPORTABLE)) != 0) {
        rmm__log_warn("a virtual pool for peers or other processes is not annotated "
                      "for the tool in "
                      "NVTX_INJECTION64_PATH, which refuses mapped memory");
        return RMM_OK;
    }
    if (!atomic_exchange_explicit(&is_logged, true, memory_order_relaxed)) {
        rmm__log_warn("virtual pools use chunks of cudaMalloc, because the tool in "
                      "NVTX_INJECTION64_PATH refuses mapped memory; RMM_NVTX=off "
                      "restores mapping");
    }
    status = rmm_cuda_resource_create(upstream_out);
    opts->flags = status == RMM_OK ? opts->flags & ~RMM_POOL_VIRTUAL : opts->flags;
    return status;
}

rmm_status_t rmm_pool_resource_create(
    rmm_resource_t *upstream, const rmm_pool_options_t *options, rmm_resource_t **out)
{
    rmm_pool_options_t opts;
    rmm_resource_t *chunks = NULL;
    rmm_status_t status;

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    status = rmm__options_copy(
        &opts, sizeof(opts), options, offsetof(rmm_pool_options_t, flags));
    if (status == RMM_OK) {
        status = check_flags(upstream, opts.flags);
    }
    if (status == RMM_OK) {
        status = check_options(&opts);
    }
    if (status == RMM_OK) {
        status = replace_range(&opts, &chunks);
    }
    if (status != RMM_OK) {
        return status;
    }
    status = rmm__pool_create(
        chunks != NULL ? chunks : upstream,
        &(pool_plan_t){
            .ops = &pool_ops,
            .name = opts.name,
            .engine =
                {.initial_bytes = opts.initial_bytes,
                 .maximum_bytes = opts.maximum_bytes,
                 .is_range = (opts.flags & RMM_POOL_VIRTUAL) != 0,
                 .is_exportable = (opts.flags & RMM_POOL_EXPORTABLE) != 0,
                 .shares_with_peers = (opts.flags & RMM_POOL_NO_PEER_ACCESS) == 0}},
        out);
    rmm_resource_release(chunks);
    return status;
}

rmm_status_t rmm_pool_get_maximum(const rmm_resource_t *mr, uint64_t *bytes_out)
{
    uint64_t maximum;

    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    RMM_CHECK_ARG(
        atomic_load_explicit(&mr->ops, memory_order_relaxed) == &pool_ops,
        "the resource is not a pool");
    RMM_CHECK_ARG(bytes_out != NULL, "bytes_out is NULL");
    maximum = ((const pool_resource_t *)mr)->maximum_bytes;
    *bytes_out = maximum != whole_units(UINT64_MAX) ? maximum : 0;
    return RMM_OK;
}
