/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/sim.h
 *
 * The simulated GPU: a device model that finds bugs, for tests and for machines
 * without a GPU. Used when RMM_DRIVER=sim is in the environment, never silently. It is a library
 * of its own: programs that call these functions are linked with librmm-sim (pkg-config rmm-sim, or
 * rmm-c::rmm-sim in CMake). Those down to rmm_sim_graph_destroy() stand for calls of CUDA; the
 * others are for a program's tests.
 *
 *   RMM_SIM_DEVICES  number of devices, default 1
 *   RMM_SIM_MEMORY   memory of each, default 80GiB (address space, backed where touched)
 *   RMM_SIM_SEED     order of work between streams, default 1
 *   RMM_SIM_FAIL     fault plan: FUNCTION:N[:ERROR][,...] fails the N-th call from now
 *                    of a driver function ("mem_alloc:3"), "any:N" of all together
 *   RMM_SIM_ATTRIBUTES  abilities to switch off: "managed_memory=0,peers=0"
 *     managed_memory, pageable_memory_access, concurrent_managed_access,
 *     virtual_memory, memory_pools, memory_pool_handle_types, host_numa_memory_pools,
 *     host_memory_pools: as cudaDeviceAttr, all 1
 *     host_numa_id   the NUMA node near a device: 0, 1, 0, ...; switched off: -1
 *     managed_alloc  0: managed_memory promises it, but an allocation answers 801, as
 *                    on a virtual GPU without unified memory
 *     managed_pools  0: no pool of managed memory, as CUDA before 13
 *     peers          0: no device can access another's memory
 *   RMM_SIM_VIOLATION  what a violation leads to (rmm_sim_violations()): "abort" aborts
 *                    where it is found; "exit" makes 70 the exit status of the process,
 *                    whatever else it would be; unset: neither
 *
 * Work queued on a stream runs late, on the thread of some later driver call. The seed
 * determines the order between streams, as far as events and synchronisation allow.
 * Kernels are host functions. Memory is poisoned when it is allocated and freed; memory of
 * memory pools when the allocation and the free run in their streams. Memory pools reuse a
 * freed block for another stream only after the free has run, regardless of events. Virtual
 * memory is poisoned whenever it is mapped; CUDA keeps its contents.
 *
 * Functions return cudaError_t values (0 is success), as CUDA's do.
 *
 * Threads: any. Kernels run one at a time and must not call this library.
 */
#ifndef RMM_SIM_H
#define RMM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/export.h>
#include <rmm/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The simulated GPU fills fresh and freed device memory with these bytes. */
#define RMM_SIM_POISON_ALLOC 0xa5
#define RMM_SIM_POISON_FREE 0xdd

typedef struct rmm_sim_event *rmm_sim_event_t;
typedef struct rmm_sim_graph *rmm_sim_graph_t;

/** A kernel: receives the copied parameters, as CUDA copies them at the launch. */
typedef void (*rmm_sim_kernel_fn)(const void *const *params);

/** True if this process runs on the simulated GPU: RMM_DRIVER is "sim", or librmm-c has opened it
 * because rmm_driver_set_default() says so. Opens it in the first case. */
RMM_API bool rmm_sim_active(void);

/**
 * Queue a kernel.
 *
 * @param name    shown by the diagnosis; copied
 * @param fn      the kernel
 * @param params  param_count addresses of values; the call copies param_bytes[i] bytes each
 * @return 0 or a cudaError_t value, as of all functions that return an int
 */
RMM_API int rmm_sim_launch(
    const char *name, rmm_sim_kernel_fn fn, rmm_stream_t stream,
    const void *const *params, const size_t *param_bytes, size_t param_count);

/** Queue a copy, as cudaMemcpyAsync(); device and host addresses alike. 1 (invalid value), and a
 * violation, if the stream's device has no access to mapped memory or to that of a memory pool. */
RMM_API int
rmm_sim_memcpy_async(void *dst, const void *src, size_t bytes, rmm_stream_t stream);
/** Queue a fill; device and host addresses alike. */
RMM_API int
rmm_sim_memset_async(void *dst, int value, size_t bytes, rmm_stream_t stream);

/** Create an event, as cudaEventCreate(). */
RMM_API int rmm_sim_event_create(rmm_sim_event_t *out);
/** Destroy an event, as cudaEventDestroy(). */
RMM_API int rmm_sim_event_destroy(rmm_sim_event_t event);
/** Record an event on a stream, as cudaEventRecord(). */
RMM_API int rmm_sim_event_record(rmm_sim_event_t event, rmm_stream_t stream);
/** Make a stream wait for an event, as cudaStreamWaitEvent(). */
RMM_API int rmm_sim_stream_wait_event(rmm_stream_t stream, rmm_sim_event_t event);
/** Run all work of the current device, as cudaDeviceSynchronize(). */
RMM_API int rmm_sim_device_synchronize(void);

/**
 * Begin a capture, as cudaStreamBeginCapture().
 *
 * @param mode  0 global, 1 thread-local, 2 relaxed, as cudaStreamCaptureMode
 */
RMM_API int rmm_sim_begin_capture(rmm_stream_t stream, int mode);
/** End a capture and make its graph, as cudaStreamEndCapture(). */
RMM_API int rmm_sim_end_capture(rmm_stream_t stream, rmm_sim_graph_t *graph_out);
/** Launch a graph on a stream, as cudaGraphLaunch(). */
RMM_API int rmm_sim_graph_launch(rmm_sim_graph_t graph, rmm_stream_t stream);
/** Destroy a graph, as cudaGraphExecDestroy(). */
RMM_API int rmm_sim_graph_destroy(rmm_sim_graph_t graph);

/** Run all queued work at each call from now on, like a GPU that is never busy. */
RMM_API void rmm_sim_run_promptly(void);

/**
 * Set the fault plan: a test of what a program does when a call of the driver fails.
 *
 * @param plan  syntax of RMM_SIM_FAIL; NULL or "" clears it
 * @return false if it does not parse
 */
RMM_API bool rmm_sim_fail(const char *plan);

/**
 * The number of violations: use of a destroyed stream or event; a double free; a free of an
 * unknown address, or one that runs before its allocation; a graph that runs again before
 * its memory was freed; virtual memory that is mapped, unmapped or freed in a wrong order, or
 * used while it is not mapped; a copy, fill or kernel of a device that has no access to mapped
 * memory or to that of a memory pool; a copy or fill of device memory that is not
 * within one allocation when it runs, or of a memory pool's block when cudaFree() frees it.
 * Each is printed on stderr once and counted. An invalid call also returns an error; queued
 * work cannot. A process that exits with violations prints their number on stderr. In a forked
 * child this count includes the parent's violations before the fork; the printed number does not.
 */
RMM_API uint64_t rmm_sim_violations(void);

/**
 * The bytes of one device that are allocated now from the simulated driver. Includes the
 * reserved memory of memory pools, memory of graphs, and physical memory, mapped or not.
 */
RMM_API uint64_t rmm_sim_allocated_bytes(int device);

#ifdef __cplusplus
}
#endif

#endif /* RMM_SIM_H */
