/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies, fills and prefetches on a real GPU, each once within its block and once a byte, an
 * element or a row too far: the second must be a finding, the first none. Run it under rmm-run:
 *
 *   rmm-run -- diag_ranges
 *
 * What is written too far lies in memory of the pool that nobody uses. Output and exit status
 * are those of diag_usage.
 */
#include <inttypes.h>
#include <string.h>

#include <cuda_runtime.h>

#include <rmm/rmm.h>

#include "gpu/diagnosed.h"

enum { BLOCK_BYTES = 4096, ROW = 1024, ROWS = 4, HOST_BYTES = 3 * BLOCK_BYTES };

typedef struct subject {
    char *block, *other; /* of BLOCK_BYTES each, behind which the pool has more */
    char *managed;
    char *host;
    cudaStream_t stream;
} subject_t;

/* Each makes one call; `more` is 0, or 1 for the error. */

static cudaError_t copy_to(const subject_t *s, size_t more)
{
    return cudaMemcpy(s->block, s->host, BLOCK_BYTES + more, cudaMemcpyHostToDevice);
}

static cudaError_t copy_from(const subject_t *s, size_t more)
{
    return cudaMemcpy(s->host, s->block, BLOCK_BYTES + more, cudaMemcpyDeviceToHost);
}

static cudaError_t copy_default(const subject_t *s, size_t more)
{
    return cudaMemcpy(s->host, s->block, BLOCK_BYTES + more, cudaMemcpyDefault);
}

static cudaError_t copy_to_async(const subject_t *s, size_t more)
{
    return cudaMemcpyAsync(
        s->block + 96, s->host, BLOCK_BYTES - 96 + more, cudaMemcpyHostToDevice,
        s->stream);
}

static cudaError_t copy_from_async(const subject_t *s, size_t more)
{
    return cudaMemcpyAsync(
        s->host, s->block, BLOCK_BYTES + more, cudaMemcpyDeviceToHost, s->stream);
}

static cudaError_t copy_between_async(const subject_t *s, size_t more)
{
    return cudaMemcpyAsync(
        s->other, s->block + more, BLOCK_BYTES, cudaMemcpyDeviceToDevice, s->stream);
}

static cudaError_t copy_peer(const subject_t *s, size_t more)
{
    return cudaMemcpyPeerAsync(s->other, 0, s->block + more, 0, BLOCK_BYTES, s->stream);
}

static cudaError_t copy_rectangle(const subject_t *s, size_t more)
{
    return cudaMemcpy2D(
        s->block + 24 + more, ROW, s->host, ROW, ROW - 24, ROWS,
        cudaMemcpyHostToDevice);
}

static cudaError_t copy_rectangle_async(const subject_t *s, size_t more)
{
    return cudaMemcpy2DAsync(
        s->host, ROW, s->block, ROW, ROW, ROWS + more, cudaMemcpyDeviceToHost,
        s->stream);
}

static cudaError_t copy_box(const subject_t *s, size_t more)
{
    struct cudaMemcpy3DParms box = {
        .srcPtr = make_cudaPitchedPtr(s->block, 256, 256, 8),
        .dstPtr = make_cudaPitchedPtr(s->host, 256, 256, 8),
        .extent = make_cudaExtent(256, 8, 2 + more),
        .kind = cudaMemcpyDeviceToHost};

    return cudaMemcpy3D(&box);
}

static cudaError_t fill(const subject_t *s, size_t more)
{
    return cudaMemset(s->block, 1, BLOCK_BYTES + more);
}

static cudaError_t fill_async(const subject_t *s, size_t more)
{
    return cudaMemsetAsync(s->block, 1, BLOCK_BYTES + more, s->stream);
}

static cudaError_t fill_rectangle(const subject_t *s, size_t more)
{
    return cudaMemset2D(s->block, ROW, 1, ROW / 2, ROWS + more);
}

static cudaError_t prefetch(const subject_t *s, size_t more)
{
#if CUDART_VERSION >= 13000
    const struct cudaMemLocation device = {.type = cudaMemLocationTypeDevice, .id = 0};

    return cudaMemPrefetchAsync(s->managed, BLOCK_BYTES + more, device, 0, s->stream);
#else
    return cudaMemPrefetchAsync(s->managed, BLOCK_BYTES + more, 0, s->stream);
#endif
}

static cudaError_t by_the_library(const subject_t *s, size_t more)
{
    return rmm_memset_async(s->block, 1, BLOCK_BYTES + more, s->stream) == RMM_OK
               ? cudaSuccess
               : cudaErrorUnknown;
}

static cudaError_t captured(const subject_t *s, size_t more)
{
    cudaGraph_t graph = NULL;
    cudaError_t error =
        cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeThreadLocal);

    if (error == cudaSuccess) {
        error = cudaMemsetAsync(s->block, 1, BLOCK_BYTES + more, s->stream);
    }
    if (error == cudaSuccess) {
        error = cudaStreamEndCapture(s->stream, &graph);
    }
    return error == cudaSuccess ? cudaGraphDestroy(graph) : error;
}

static const struct {
    const char *name;
    cudaError_t (*call)(const subject_t *subject, size_t more);
} calls[] = {
    {"cudaMemcpy to the device", copy_to},
    {"cudaMemcpy to the host", copy_from},
    {"cudaMemcpyDefault", copy_default},
    {"cudaMemcpyAsync to the device", copy_to_async},
    {"cudaMemcpyAsync to the host", copy_from_async},
    {"cudaMemcpyAsync between blocks", copy_between_async},
    {"cudaMemcpyPeerAsync", copy_peer},
    {"cudaMemcpy2D", copy_rectangle},
    {"cudaMemcpy2DAsync", copy_rectangle_async},
    {"cudaMemcpy3D", copy_box},
    {"cudaMemset", fill},
    {"cudaMemsetAsync", fill_async},
    {"cudaMemset2D", fill_rectangle},
    {"cudaMemPrefetchAsync", prefetch},
    {"rmm_memset_async", by_the_library},
    {"cudaMemsetAsync in a capture", captured},
};

static void check_call(const subject_t *subject, size_t i)
{
    char what[128];

    for (size_t more = 0; more < 2; more++) {
        uint64_t before = findings_total();
        cudaError_t error = calls[i].call(subject, more);
        uint64_t found = findings_total() - before;

        (void)cudaDeviceSynchronize();
        snprintf(
            what, sizeof(what), "%s, %s", calls[i].name,
            more == 0 ? "right" : "too far");
        check(
            error == cudaSuccess && found == more, what, "%s; %" PRIu64 " findings",
            cudaGetErrorString(error), found);
    }
}

static void print_findings(void)
{
    diag_file_t file;

    read_file(&file);
    check(
        strcmp(file.header->source, "active") == 0 &&
            strcmp(file.header->mode, "usage,bounds,driver") == 0,
        "the source is active", "%s, %s", file.header->source, file.header->mode);
    for (uint32_t i = 0; i < file.header->findings_used; i++) {
        printf(
            "finding: %s, %" PRIu64 " bytes, %" PRIu64 " times\n",
            (const char *)(uintptr_t)file.findings[i].function, file.findings[i].bytes,
            file.findings[i].count);
    }
    diag_file_close(&file);
}

static char *take(rmm_resource_t *mr, size_t bytes)
{
    void *block = NULL;

    if (rmm_resource_alloc(mr, bytes, 0, RMM_STREAM_DEFAULT, &block) != RMM_OK) {
        give_up(rmm_last_error_message());
    }
    return block;
}

int main(void)
{
    rmm_resource_t *pool = NULL, *managed = NULL;
    subject_t subject = {.host = calloc(1, HOST_BYTES)};
    int gpus = 0;

    diagnosed_begin("diag_ranges", cudaGetDeviceCount(&gpus) == cudaSuccess ? gpus : 0);
    if (subject.host == NULL ||
        rmm_resource_create_from_spec("pool:64MiB", &pool) != RMM_OK ||
        rmm_resource_create_from_spec("pool_managed:64MiB", &managed) != RMM_OK ||
        cudaStreamCreate(&subject.stream) != cudaSuccess) {
        give_up("blocks and a stream");
    }
    subject.block = take(pool, BLOCK_BYTES);
    (void)take(pool, BLOCK_BYTES); /* its neighbour, whoever comes first */
    subject.other = take(pool, BLOCK_BYTES);
    subject.managed = take(managed, BLOCK_BYTES);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        check_call(&subject, i);
    }
    print_findings();
    return diagnosed_end();
}
