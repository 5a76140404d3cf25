/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory: device memory, which the host reads and writes here anyway, with a note (notes.c)
 * of the preferred location that a program set. Nothing moves, and a note is taken at the call, not
 * in stream order, as CUDA's range attributes are.
 *
 * Locking: all under rmm__sim_lock.
 */
#include "driver/sim/internal.h"

int rmm__sim_managed_alloc(void **ptr_out, size_t bytes)
{
    if (rmm__sim_attribute(RMM_ATTRIBUTE_MANAGED_MEMORY) == 0 ||
        rmm__sim_attribute(SIM_MANAGED_ALLOC) == 0) {
        return RMM_DRIVER_NOT_SUPPORTED;
    }
    return bytes != 0 /* unlike cudaMalloc */
               ? rmm__sim_memory_take("managed_alloc", ptr_out, bytes, SIM_USE_MANAGED)
               : RMM_DRIVER_INVALID_VALUE;
}

/* True for managed memory that lies in one allocation or in one segment of a pool, and for host
 * memory where a device can read that. */
static bool can_move_locked(const void *ptr, size_t bytes)
{
    sim_block_t block;

    if (rmm__sim_memory_find_locked(ptr, &block)) {
        return (block.use == SIM_USE_MANAGED || block.use == SIM_USE_MANAGED_POOL) &&
               bytes <= block.bytes - (size_t)((const char *)ptr - block.begin);
    }
    return !rmm__sim_memory_is_device_locked(ptr) &&
           !rmm__sim_virtual_holds_locked(ptr) &&
           rmm__sim_attribute(RMM_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0;
}

static int check_locked(const void *ptr, size_t bytes, int device)
{
    if (device != RMM_DRIVER_HOST &&
        (device < 0 || device >= rmm__sim_device_count() ||
         rmm__sim_attribute(RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0)) {
        return RMM_DRIVER_INVALID_DEVICE;
    }
    return ptr != NULL && bytes != 0 && can_move_locked(ptr, bytes)
               ? RMM_DRIVER_OK
               : RMM_DRIVER_INVALID_VALUE;
}

int rmm__sim_mem_prefer(void *ptr, size_t bytes, int device)
{
    int error = rmm__sim_enter("mem_prefer");

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = check_locked(ptr, bytes, device);
    if (error == RMM_DRIVER_OK) {
        error = rmm__sim_note_preferred_locked(ptr, bytes, device);
    }
    rmm__sim_leave();
    return error;
}

/* A graph cannot hold one: it ruins the capture of its stream. */
int rmm__sim_mem_prefetch(
    const void *ptr, size_t bytes, int device, rmm_stream_t handle)
{
    uint64_t word = (uint64_t)(uintptr_t)ptr;
    sim_observation_t observation = {
        .kind = RMM_DIAG_PREFETCH,
        .name = "mem_prefetch",
        .stream = handle,
        .words = &word,
        .word_count = 1,
        .bytes = bytes};
    sim_stream_t *stream;
    int error;

    rmm__sim_tell_before(&observation);
    stream = rmm__sim_enter_stream(handle, "mem_prefetch", &error);
    if (stream == NULL) {
        return error;
    }
    error = rmm__sim_capture_check_wait_locked(stream);
    if (error == RMM_DRIVER_OK) {
        error = check_locked(ptr, bytes, device);
    }
    if (error == RMM_DRIVER_OK) {
        error = rmm__sim_note_prefetched_locked(ptr, bytes, device);
    }
    observation.device = stream->device;
    rmm__sim_leave();
    if (error == RMM_DRIVER_OK) {
        rmm__sim_tell(&observation);
    }
    return error;
}
