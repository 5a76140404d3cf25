/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --verify on a real GPU. One block of threads writes or checks one piece of a block of
 * memory, a word a thread; the report lies in device memory from cudaMalloc.
 *
 * The event that orders two streams is used again and again: a wait refers to the record
 * made before it.
 */
#include <stdlib.h>

#include <cuda_runtime.h>

#include "replay/verify.h"

#define THREADS 128

typedef struct cuda_state {
    verify_report_t *report; /* device memory */
    cudaEvent_t event;
} cuda_state_t;

static __global__ void fill_kernel(verify_block_t block)
{
    unsigned char *bytes = (unsigned char *)block.address;
    uint64_t end = verify_piece_end(block.bytes, blockIdx.x);
    uint64_t at = verify_piece_begin(block.bytes, blockIdx.x) + threadIdx.x * 8;
    for (; at < end; at += blockDim.x * 8) {
        uint64_t word = verify_word(block.op, at / 8);
        if (end - at >= 8) {
            *(uint64_t *)(bytes + at) = word;
        } else {
            for (uint64_t i = at; i < end; i++, word >>= 8) {
                bytes[i] = (unsigned char)word;
            }
        }
    }
}

static __device__ uint64_t load_word(const unsigned char *bytes, uint64_t count)
{
    if (count >= 8) {
        return *(const uint64_t *)bytes;
    }
    uint64_t word = 0;
    for (uint64_t i = 0; i < count; i++) {
        word |= (uint64_t)bytes[i] << (i * 8);
    }
    return word;
}

static __global__ void check_kernel(verify_block_t block, verify_report_t *report)
{
    const unsigned char *bytes = (const unsigned char *)block.address;
    uint64_t end = verify_piece_end(block.bytes, blockIdx.x);
    uint64_t at = verify_piece_begin(block.bytes, blockIdx.x) + threadIdx.x * 8;
    for (; at < end; at += blockDim.x * 8) {
        uint64_t expected =
            verify_word(block.op, at / 8) & verify_word_mask(block.bytes, at / 8);
        uint64_t found = load_word(bytes + at, end - at);
        if (found != expected) {
            unsigned long long index = atomicAdd(&report->count, 1ULL);
            if (index < VERIFY_SHOWN_MAX) {
                verify_mismatch_t mismatch = {
                    block.op, (uint64_t)block.address, at, expected, found};
                report->shown[index] = mismatch;
            }
        }
    }
}

static void cuda_close(void *state)
{
    cuda_state_t *cuda = (cuda_state_t *)state;
    if (cuda->event != NULL) {
        cudaEventDestroy(cuda->event);
    }
    cudaFree(cuda->report);
    free(cuda);
}

static int cuda_open(void **state)
{
    cuda_state_t *cuda = (cuda_state_t *)calloc(1, sizeof *cuda);
    if (cuda == NULL) {
        return cudaErrorMemoryAllocation;
    }
    cudaError_t error = cudaEventCreateWithFlags(&cuda->event, cudaEventDisableTiming);
    if (error == cudaSuccess) {
        error = cudaMalloc((void **)&cuda->report, sizeof *cuda->report);
    }
    if (error == cudaSuccess) {
        error = cudaMemset(cuda->report, 0, sizeof *cuda->report);
    }
    if (error == cudaSuccess) {
        error =
            cudaDeviceSynchronize(); /* the streams do not wait for the default one */
    }
    if (error != cudaSuccess) {
        cuda_close(cuda);
        return error;
    }
    *state = cuda;
    return 0;
}

static int cuda_fill(void *state, const verify_block_t *block, rmm_stream_t stream)
{
    (void)state;
    unsigned pieces = (unsigned)verify_piece_count(block->bytes);
    fill_kernel<<<pieces, THREADS, 0, stream>>>(*block);
    return cudaGetLastError();
}

static int cuda_check(void *state, const verify_block_t *block, rmm_stream_t stream)
{
    cuda_state_t *cuda = (cuda_state_t *)state;
    unsigned pieces = (unsigned)verify_piece_count(block->bytes);
    check_kernel<<<pieces, THREADS, 0, stream>>>(*block, cuda->report);
    return cudaGetLastError();
}

static int cuda_order(void *state, rmm_stream_t earlier, rmm_stream_t later)
{
    cuda_state_t *cuda = (cuda_state_t *)state;
    cudaError_t error = cudaEventRecord(cuda->event, earlier);
    return error != cudaSuccess ? error : cudaStreamWaitEvent(later, cuda->event, 0);
}

static int cuda_finish(void *state, verify_report_t *report)
{
    cuda_state_t *cuda = (cuda_state_t *)state;
    cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess) {
        error =
            cudaMemcpy(report, cuda->report, sizeof *report, cudaMemcpyDeviceToHost);
    }
    return error;
}

static const char *cuda_error_text(int error)
{
    return cudaGetErrorString((cudaError_t)error);
}

extern "C" const verify_backend_t verify_cuda_backend = {
    cuda_open,   cuda_fill,  cuda_check,      cuda_order,
    cuda_finish, cuda_close, cuda_error_text,
};
