/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CUDA program that does not use this library, with each way to take memory from the driver:
 * what it holds must be in the segment that librmm-c, loaded for it, publishes. Run it under
 * rmm-run:
 *
 *   rmm-run -- diag_driver
 *
 * Output and exit status are those of diag_usage.
 */
#include <inttypes.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime.h>

#include "gpu/diagnosed.h"
#include "segment/segment_reader.h"

#define MiB (UINT64_C(1) << 20)

static rmm_segment_t segment;

/* The only one in the runtime directory. */
static void open_segment(void)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    DIR *entries = opendir(directory);
    struct dirent *entry = NULL;

    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        if (rmm__segment_name_parse(entry->d_name, NULL)) {
            if (rmm__segment_open(&segment, dirfd(entries), entry->d_name, reason) !=
                RMM_SEGMENT_GOOD) {
                give_up(reason);
            }
            closedir(entries);
            return;
        }
    }
    give_up("the segment is there: none was published; run under rmm-run");
}

static uint64_t held(uint32_t location)
{
    rmm_record_t record;
    uint64_t bytes = 0;

    if (rmm__segment_read_location(&segment, location, &record)) {
        (void)rmm__segment_location_stat(
            &segment, &record, RMM_LOCATION_STAT_current_bytes, &bytes);
    }
    return bytes;
}

static void
check_held(const char *what, uint32_t location, uint64_t before, uint64_t more)
{
    uint64_t now = held(location);

    check(
        now == before + more, what, "%" PRIu64 " bytes more, %" PRIu64 " expected",
        now - before, more);
}

static void must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        printf("%s: %s\n", what, cudaGetErrorString(error));
        give_up(what);
    }
}
#define MUST(call) must(call, #call)

/* --- the ways ---------------------------------------------------------------------------- */

static void plain(void)
{
    uint64_t before = held(0);
    void *block = NULL, *too_large = NULL;

    MUST(cudaMalloc(&block, 3 * MiB));
    check_held("cudaMalloc", 0, before, 3 * MiB);
    check(cudaMalloc(&too_large, (size_t)1 << 50) != cudaSuccess, "1 PiB", "is there");
    (void)cudaGetLastError();
    check_held("a refused cudaMalloc", 0, before, 3 * MiB);
    MUST(cudaFree(block));
    check_held("cudaFree", 0, before, 0);
}

static void with_rows(void)
{
    uint64_t before = held(0);
    void *block = NULL;
    size_t pitch = 0;

    MUST(cudaMallocPitch(&block, &pitch, 1000, 100));
    check_held("cudaMallocPitch", 0, before, pitch * 100);
    MUST(cudaFree(block));
    check_held("its free", 0, before, 0);
}

static void managed(void)
{
    uint64_t before = held(0);
    void *block = NULL;

    MUST(cudaMallocManaged(&block, 2 * MiB, cudaMemAttachGlobal));
    check_held("cudaMallocManaged", 0, before, 2 * MiB);
    MUST(cudaFree(block));
    check_held("its free", 0, before, 0);
}

static void on_a_stream(cudaStream_t stream)
{
    uint64_t before = held(0);
    void *block = NULL;

    MUST(cudaMallocAsync(&block, 5 * MiB, stream));
    check_held("cudaMallocAsync", 0, before, 5 * MiB);
    MUST(cudaFreeAsync(block, stream));
    check_held("cudaFreeAsync", 0, before, 0);
}

static void in_a_capture(cudaStream_t stream)
{
    uint64_t before = held(0);
    cudaGraph_t graph = NULL;
    void *block = NULL;

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(cudaMallocAsync(&block, 5 * MiB, stream));
    MUST(cudaFreeAsync(block, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    check_held("cudaMallocAsync while capturing", 0, before, 0);
    MUST(cudaGraphDestroy(graph));
}

static void in_host_memory(void)
{
    uint64_t before = held(RMM_SEGMENT_HOST_LOCATION);
    void *pinned = NULL, *mapped = NULL;

    MUST(cudaMallocHost(&pinned, 10000));
    MUST(cudaHostAlloc(&mapped, 500, cudaHostAllocMapped));
    check_held("pinned memory", RMM_SEGMENT_HOST_LOCATION, before, 10500);
    MUST(cudaFreeHost(pinned));
    MUST(cudaFreeHost(mapped));
    check_held("its free", RMM_SEGMENT_HOST_LOCATION, before, 0);
}

static void arrays(void)
{
    uint64_t before = held(0);
    struct cudaChannelFormatDesc format =
        cudaCreateChannelDesc(32, 32, 32, 32, cudaChannelFormatKindFloat);
    cudaArray_t array = NULL, layers = NULL;
    cudaMipmappedArray_t levels = NULL;

    MUST(cudaMallocArray(&array, &format, 64, 32, 0));
    check_held("cudaMallocArray", 0, before, UINT64_C(64) * 32 * 16);
    MUST(cudaMalloc3DArray(
        &layers, &format, make_cudaExtent(64, 32, 4), cudaArrayLayered));
    MUST(cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(64, 32, 0), 2, 0));
    check_held(
        "layers and levels", 0, before,
        UINT64_C(16) * (64 * 32 + 64 * 32 * 4 + 64 * 32 + 32 * 16));
    MUST(cudaFreeArray(array));
    MUST(cudaFreeArray(layers));
    MUST(cudaFreeMipmappedArray(levels));
    check_held("their frees", 0, before, 0);
}

#if CUDART_VERSION < 12050 /* these answer for their own version, which is 12 as well */
#define cudaGetDriverEntryPointByVersion(name, function, version, flags, found)        \
    cudaGetDriverEntryPoint(name, function, flags, found)
#endif
#define ENTRY(name)                                                                    \
    __typeof__(&name) name##_ = NULL;                                                  \
    MUST(cudaGetDriverEntryPointByVersion(                                             \
        #name, (void **)&name##_, 12000, cudaEnableDefault, NULL))

/* As PyTorch's expandable segments. */
static void mapped_in_pieces(void)
{
    uint64_t before = held(0);
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle pieces[2];
    CUdeviceptr range = 0;
    size_t unit = 0;

    ENTRY(cuMemGetAllocationGranularity);
    ENTRY(cuMemAddressReserve);
    ENTRY(cuMemCreate);
    ENTRY(cuMemMap);
    ENTRY(cuMemUnmap);
    ENTRY(cuMemRelease);
    ENTRY(cuMemAddressFree);
    if (cuMemGetAllocationGranularity_(
            &unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
        cuMemAddressReserve_(&range, 2 * unit, 0, 0, 0) != CUDA_SUCCESS) {
        give_up("virtual memory");
    }
    for (int i = 0; i < 2; i++) {
        if (cuMemCreate_(&pieces[i], unit, &properties, 0) != CUDA_SUCCESS ||
            cuMemMap_(range + (size_t)i * unit, unit, 0, pieces[i], 0) !=
                CUDA_SUCCESS) {
            give_up("mapping");
        }
    }
    check_held("cuMemMap", 0, before, 2 * unit);
    check(cuMemUnmap_(range, 2 * unit) == CUDA_SUCCESS, "unmapping both", "failed");
    check_held("cuMemUnmap", 0, before, 0);
    for (int i = 0; i < 2; i++) {
        (void)cuMemRelease_(pieces[i]);
    }
    (void)cuMemAddressFree_(range, 2 * unit);
}

static void is_a_block_of_the_diagnosis(void)
{
    diag_file_t file;
    bool found = false;
    void *block = NULL;

    MUST(cudaMalloc(&block, 7 * MiB));
    read_file(&file);
    check(
        strcmp(file.header->source, "active") == 0, "CUPTI is active", "%s",
        file.header->source);
    for (uint32_t i = 0; i < file.header->rows.used; i++) {
        found = found || (file.rows[i].live != 0 &&
                          file.rows[i].address == (uint64_t)(uintptr_t)block &&
                          file.rows[i].bytes == 7 * MiB);
    }
    check(found, "cudaMalloc is a block in diag/usage", "no row");
    diag_file_close(&file);
    MUST(cudaMemset(block, 0, 7 * MiB));
    MUST(cudaFree(block));
}

int main(void)
{
    int gpus = 0;
    cudaStream_t stream = NULL;
    void *first = NULL;

    diagnosed_begin("diag_driver", cudaGetDeviceCount(&gpus) == cudaSuccess ? gpus : 0);
    MUST(cudaMalloc(&first, MiB)); /* now there is a segment */
    open_segment();
    check_held("the first cudaMalloc", 0, 0, MiB);
    MUST(cudaStreamCreate(&stream));
    plain();
    with_rows();
    managed();
    on_a_stream(stream);
    in_a_capture(stream);
    in_host_memory();
    arrays();
    mapped_in_pieces();
    is_a_block_of_the_diagnosis();
    MUST(cudaFree(first));
    check_held("the first one's free", 0, 0, 0);
    rmm__segment_close(&segment);
    return diagnosed_end();
}
