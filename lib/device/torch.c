/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of PyTorch's pluggable allocator.
 *
 * Why a map: PyTorch frees by address, and the default resource may have been replaced
 * since. Each entry holds a reference of the resource that its block came from.
 *
 * Why an exception out of C: PyTorch (2.11, CUDAPluggableAllocator::malloc) does not
 * check the address that it gets, and expects a C++ exception for a failure. libstdc++ exports a
 * function that throws one with a text; nothing here holds a lock or memory when it is
 * called, and this file is compiled with -fexceptions.
 *
 * Locking: `lock` protects `blocks` and `streams`; never held while a resource or the driver
 * is called. Held over fork(), so that the child finds the maps whole.
 */
#include <rmm/torch.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include <rmm/device_resource.h>

#include "core/assert.h"
#include "core/fork.h"
#include "core/mutex.h"
#include "core/pointer_map.h"
#include "device/torch_streams.h"
#include "log/log.h"

static rmm_mutex_t lock = RMM_MUTEX_INITIALIZER;
static rmm_pointer_map_t
    blocks; /* never freed: tensors may outlive any handler of ours */

static rmm_torch_streams_t streams; /* of blocks in `blocks` only; never freed either */

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_TORCH, &lock, NULL);
}

/* --- failures ------------------------------------------------------------------------- */

typedef void (*raise_fn)(const char *text);

/* std::__throw_runtime_error(char const *), if PyTorch is here to catch it. */
static raise_fn find_raise(void)
{
    void *torch = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    void *runtime;
    void *symbol;
    raise_fn raise = NULL;

    if (torch == NULL) {
        return NULL;
    }
    dlclose(torch); /* PyTorch keeps it loaded */
    runtime = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (runtime != NULL) {
        symbol = dlsym(runtime, "_ZSt21__throw_runtime_errorPKc");
        memcpy(&raise, &symbol, sizeof(raise)); /* C knows no cast to a function */
        dlclose(runtime);
    }
    return raise;
}

/* Raises the last error in PyTorch. May not return. */
RMM_COLD static void raise_last_error(void)
{
    raise_fn raise;

    rmm__log_error("%s", rmm_last_error_message());
    raise = find_raise();
    if (raise != NULL) {
        raise(rmm_last_error_message());
    }
}

RMM_COLD static void *fail(rmm_status_t status, size_t bytes, int device)
{
    (void)rmm__error_cuda(
        status, rmm_last_cuda_error(),
        "rmm-c, %zu bytes for PyTorch on device %d: %s: %s", bytes, device,
        rmm_status_text(status), rmm_last_error_message());
    raise_last_error();
    return NULL;
}

/* --- the functions ---------------------------------------------------------------- */

static rmm_status_t reserve(void)
{
    bool reserved;

    rmm__mutex_lock(&lock);
    reserved = rmm__pointer_map_reserve(&blocks);
    rmm__mutex_unlock(&lock);
    return reserved ? RMM_OK : RMM_ERR_OUT_OF_HOST_MEMORY;
}

static void remember(void *ptr, size_t bytes, rmm_resource_t *mr)
{
    rmm__mutex_lock(&lock);
    if (ptr != NULL) {
        rmm__pointer_map_insert_entry(
            &blocks, &(rmm_pointer_map_entry_t){ptr, bytes, mr});
    } else {
        rmm__pointer_map_unreserve(&blocks);
    }
    rmm__mutex_unlock(&lock);
}

/* The reference of the block and its streams become the caller's. False: no such block. */
static bool
forget(void *ptr, rmm_pointer_map_entry_t *entry_out, rmm_torch_use_t **uses_out)
{
    bool is_known;

    rmm__mutex_lock(&lock);
    is_known = rmm__pointer_map_find_entry(&blocks, ptr, entry_out);
    if (is_known) {
        rmm__pointer_map_erase(&blocks, ptr);
    }
    *uses_out = rmm__torch_streams_take(&streams, ptr);
    rmm__mutex_unlock(&lock);
    return is_known;
}

void *rmm_torch_malloc(size_t bytes, int device, rmm_stream_t stream)
{
    rmm_resource_t *mr;
    void *ptr = NULL;
    rmm_status_t status;

    if (bytes == 0) { /* PyTorch never frees these */
        return NULL;
    }
    rmm_default_resource_prefer_auto();
    status = rmm_get_per_device_resource(device, &mr);
    if (status != RMM_OK) {
        return fail(status, bytes, device);
    }
    status = reserve();
    if (status == RMM_OK) {
        status = rmm_resource_alloc(mr, bytes, 0, stream, &ptr);
        remember(ptr, bytes, mr);
    }
    if (status != RMM_OK) {
        rmm_resource_release(mr);
        return fail(status, bytes, device);
    }
    return ptr;
}

void rmm_torch_free(void *ptr, size_t bytes, int device, rmm_stream_t stream)
{
    rmm_pointer_map_entry_t block;
    rmm_torch_use_t *uses;

    if (ptr == NULL) {
        return;
    }
    if (!forget(ptr, &block, &uses)) {
        rmm__log_error(
            "PyTorch freed %p bytes %zu on device %d, which rmm_torch_malloc did not "
            "allocate: ignored",
            ptr, bytes, device);
        return;
    }
    if (block.bytes != bytes) { /* the free would be refused, and the block lost */
        rmm__log_error(
            "PyTorch freed %p with bytes %zu, but allocated it with bytes %zu: the "
            "whole block is freed",
            ptr, bytes, block.bytes);
    }
    rmm__torch_streams_order(uses, device, stream);
    rmm_resource_dealloc(block.owner, ptr, block.bytes, 0, stream);
    rmm_resource_release(block.owner);
}

void rmm_torch_record_stream(void *ptr, rmm_stream_t stream)
{
    size_t bytes;
    bool recorded = true;

    rmm__mutex_lock(&lock);
    if (ptr != NULL && rmm__pointer_map_find(&blocks, ptr, &bytes)) {
        recorded = rmm__torch_streams_add(&streams, ptr, stream);
    }
    rmm__mutex_unlock(&lock);
    if (!recorded) {
        (void)rmm__error(
            RMM_ERR_OUT_OF_HOST_MEMORY,
            "rmm-c: out of host memory while recording a stream that uses block %p",
            ptr);
        raise_last_error();
    }
}
