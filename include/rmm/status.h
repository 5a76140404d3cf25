/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/status.h
 *
 * The status that a call returns, and the details of this thread's last failure.
 *
 * Any function that needs the driver may return, besides the statuses that it names:
 *   RMM_ERR_NO_DEVICE         there is no usable GPU; the message says what to do
 *   RMM_ERR_INVALID_ARGUMENT  RMM_DRIVER names no driver of this library
 *   RMM_ERR_UNSUPPORTED       this process is a forked child whose parent had used the driver
 *   RMM_ERR_CUDA              the driver failed: rmm_last_cuda_error()
 *   RMM_ERR_OUT_OF_MEMORY     the driver reported cudaErrorMemoryAllocation
 *
 * Lifetime: every string here is static or belongs to the calling thread.
 *
 * Threads: any. The last error is kept per thread; a success does not clear it.
 */
#ifndef RMM_STATUS_H
#define RMM_STATUS_H

#include <stdbool.h>

#include <rmm/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/** X(name, value, text). Append only: values are ABI. */
#define RMM_STATUS_MAP(X)                                                              \
    X(OK, 0, "success")                                                                \
    X(ERR_INVALID_ARGUMENT, -1, "invalid argument")                                    \
    X(ERR_OUT_OF_RANGE, -2, "out of range")                                            \
    X(ERR_OUT_OF_MEMORY, -3, "out of memory: the device, a pool or a limit is full")   \
    X(ERR_BAD_ALLOC, -4, "the allocation failed for another reason than memory")       \
    X(ERR_OUT_OF_HOST_MEMORY, -5, "out of host memory")                                \
    X(ERR_CUDA, -6, "a CUDA call failed")                                              \
    X(ERR_NO_DEVICE, -7, "no usable GPU")                                              \
    X(ERR_UNSUPPORTED, -8, "not supported here")                                       \
    X(ERR_IO, -9, "input or output failed")                                            \
    X(ERR_INVALID_ALIGNMENT, -10, "an alignment is not a power of two in its range")   \
    X(ERR_ASLEEP, -11, "the pool is asleep")                                           \
    X(ERR_IN_USE, -12, "in use, so that this cannot be done now")

/** Zero is success, every failure is negative. */
typedef enum rmm_status {
#define X(name, value, text) RMM_##name = value,
    RMM_STATUS_MAP(X)
#undef X
} rmm_status_t;

/** The name as written in C, "RMM_ERR_OUT_OF_MEMORY"; "RMM_ERR_UNKNOWN" for others. */
RMM_API const char *rmm_status_name(rmm_status_t status);

/** The meaning of a status as one English phrase, lower case, without a full stop. */
RMM_API const char *rmm_status_text(rmm_status_t status);

/** True for RMM_ERR_OUT_OF_MEMORY and RMM_ERR_BAD_ALLOC. */
RMM_API bool rmm_status_is_alloc_failure(rmm_status_t status);

/**
 * The reason of this thread's last failed call, in one line; never NULL ("" before the
 * first failure). Valid until the thread's next failed call.
 */
RMM_API const char *rmm_last_error_message(void);

/** The cudaError_t that made this thread's last failed call fail; 0: none did. */
RMM_API int rmm_last_cuda_error(void);

#ifdef __cplusplus
}
#endif

#endif /* RMM_STATUS_H */
