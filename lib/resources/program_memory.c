/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the program takes from the driver without this library, as a diagnosis library
 * reports it (rmm/sys/diag.h). It is accounted for like the blocks of a resource, so /rmm
 * shows any CUDA program. The resource is not an allocator, and no caller gets a reference to it.
 *
 * Invariants:
 *  - one resource for each GPU and one for the host's memory, made with its first block, kept
 *    until the process ends.
 *  - a block is in `blocks` exactly while it is counted; its `owner` is its resource.
 *
 * Locking: `lock` protects `blocks`. It is never held over a driver call; it is held over
 * fork(), and in the child nothing is counted any more.
 */
#include "resources/program_memory.h"

#include <time.h>

#include <rmm/sys/diag.h>

#include "base/callback.h"
#include "base/count.h"
#include "base/diag_attach.h"
#include "base/resource_impl.h"
#include "core/fork.h"
#include "core/host_memory.h"
#include "core/mutex.h"
#include "core/pointer_map.h"
#include "core/uncancelled.h"
#include "driver/driver.h"
#include "publish/trace.h"

#define HOST_INDEX RMM_SEGMENT_DEVICES
#define FLAGS                                                                          \
    (RMM_DIAG_BLOCK_IN_STREAM_ORDER | RMM_DIAG_BLOCK_SYNC | RMM_DIAG_BLOCK_PIECE)

static rmm_mutex_t lock = RMM_MUTEX_INITIALIZER;
static rmm_pointer_map_t blocks;
static _Atomic(rmm_resource_t *)
    resources[RMM_SEGMENT_DEVICES + 1]; /* the last one: the host's */

/*
 * One thread at a time opens the driver and looks for the diagnosis library, for which it may
 * need the dynamic linker's lock. A thread that loads a library, and allocates meanwhile, has
 * that lock: so others wait for a second at most, and their block is not counted.
 */
#define OPENING_PAUSE_NS 100000l
#define OPENING_PAUSES 10000
static atomic_flag is_opening = ATOMIC_FLAG_INIT;

static atomic_bool is_over; /* see rmm_diag_driver_forget_v1() */

static void forget_opening(void)
{
    atomic_flag_clear_explicit(&is_opening, memory_order_relaxed);
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_PROGRAM_MEMORY, &lock, forget_opening);
}

/* --- the resource ---------------------------------------------------------------------- */

static rmm_status_t
refuse_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    (void)mr;
    (void)request;
    (void)ptr_out;
    return rmm__error(
        RMM_ERR_UNSUPPORTED, "this resource only counts memory that the program takes "
                             "from the driver: it cannot allocate");
}

static void refuse_free(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    rmm__resource_refuse_free(
        mr, ptr, request,
        "this resource only counts memory that the program takes from the driver");
}

static rmm_status_t refuse_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    (void)mr;
    (void)keep_bytes;
    return rmm__error(
        RMM_ERR_UNSUPPORTED, "this resource only counts memory that the program takes "
                             "from the driver: it cannot trim");
}

static void destroy(rmm_resource_t *mr)
{
    rmm__resource_fini(mr);
    rmm__free(mr);
}

static const rmm_resource_ops_t ops = {
    .type_name = "driver",
    .alloc = refuse_alloc,
    .dealloc = refuse_free,
    .trim = refuse_trim,
    .destroy = destroy,
    .ready_on_all_streams = false,
    .owns_blocks = true,
};

static rmm_status_t make_resource(int device, rmm_resource_t **out)
{
    rmm_resource_t *fresh = rmm__calloc(1, sizeof(*fresh));
    rmm_status_t status;

    if (fresh == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    status = rmm__resource_init(
        fresh,
        &(rmm_resource_desc_t){
            .ops = &ops,
            .properties = device < 0 ? RMM_HOST_ACCESSIBLE : RMM_DEVICE_ACCESSIBLE,
            .device = device,
        });
    if (status != RMM_OK) {
        rmm__free(fresh);
        return status;
    }
    *out = fresh;
    return RMM_OK;
}

/* False: another thread has been opening for a second. */
static bool begin_opening(void)
{
    RMM_UNCANCELLED;
    const struct timespec pause = {.tv_nsec = OPENING_PAUSE_NS};

    for (int i = 0; i < OPENING_PAUSES; i++) {
        /* acquire: pairs with end_opening(); the resource is there */
        if (!atomic_flag_test_and_set_explicit(&is_opening, memory_order_acquire)) {
            return true;
        }
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

static void end_opening(void)
{
    /* release: as above */
    atomic_flag_clear_explicit(&is_opening, memory_order_release);
}

/* While is_opening is ours. */
static rmm_status_t open_resource(uint32_t index, int device, rmm_resource_t **out)
{
    rmm_status_t status = RMM_OK;

    *out = atomic_load_explicit(&resources[index], memory_order_relaxed);
    if (*out == NULL) {
        status = make_resource(device, out);
        if (status == RMM_OK) {
            rmm__diag_look();
            /* release: pairs with resource_of() */
            atomic_store_explicit(&resources[index], *out, memory_order_release);
        }
    }
    return status;
}

static rmm_status_t resource_of(int device, rmm_resource_t **out)
{
    uint32_t index = device < 0 ? HOST_INDEX : (uint32_t)device;
    rmm_status_t status = RMM_OK;

    if (device >= (int)RMM_SEGMENT_DEVICES) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED, "device %d: only %u devices are supported", device,
            RMM_SEGMENT_DEVICES);
    }
    /* acquire: pairs with open_resource() */
    *out = atomic_load_explicit(&resources[index], memory_order_acquire);
    if (*out != NULL) {
        return RMM_OK;
    }
    if (!begin_opening()) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED, "another thread is still opening the driver");
    }
    status = open_resource(index, device, out);
    end_opening();
    return status;
}

bool rmm__program_memory_is_counted(int device)
{
    uint32_t index = device < 0 ? HOST_INDEX : (uint32_t)device;

    return atomic_load_explicit(&resources[index], memory_order_relaxed) != NULL &&
           !atomic_load_explicit(&is_over, memory_order_relaxed);
}

/* --- blocks ------------------------------------------------------------------------------ */

static void trace(
    const rmm_resource_t *mr, uint32_t action, const void *ptr,
    const rmm_request_t *request)
{
    if (rmm__trace_is_on()) {
        rmm__resource_trace(mr, action, ptr, request);
    }
}

static rmm_request_t request_of(size_t bytes, rmm_stream_t stream)
{
    return (rmm_request_t){
        .bytes = bytes, .align = RMM_ALIGN_DEFAULT, .stream = stream, .user = true};
}

static rmm_annotate_block_t reported(
    const rmm_resource_t *mr, const void *ptr, const rmm_request_t *request,
    uint32_t flags)
{
    return (rmm_annotate_block_t){
        .ptr = ptr,
        .bytes = request->bytes,
        .stream = request->stream,
        .resource_id = mr->instance_id,
        .resource_type = mr->accounting.slot->type,
        .resource_name = mr->accounting.slot->name,
        .device = mr->device,
        .flags = flags};
}

/* It is in the map. */
static void
count_up(rmm_resource_t *mr, void *ptr, const rmm_request_t *request, uint32_t flags)
{
    rmm__accounting_reserve_shared(&mr->accounting, request->bytes);
    rmm__location_reserve(mr->accounting.location, request->bytes);
    rmm__count_alloc(mr, request, 0);
    trace(mr, RMM_EVENT_ALLOCATE, ptr, request);
    if ((flags & RMM_DIAG_BLOCK_PIECE) == 0 && rmm__diag_may_ask()) {
        const rmm_annotate_block_t block =
            reported(mr, ptr, request, flags | RMM_DIAG_BLOCK_RETURNED);

        rmm__diag_report_alloc(&block);
    }
}

/* It is no longer in the map. */
static void
count_down(rmm_resource_t *mr, void *ptr, const rmm_request_t *request, uint32_t flags)
{
    if (rmm__diag_is_attached()) {
        const rmm_annotate_block_t block = reported(mr, ptr, request, flags);

        (void)rmm__diag_report_free(&block);
    }
    trace(mr, RMM_EVENT_FREE, ptr, request);
    rmm__count_free(mr, request, 0);
    rmm__accounting_unreserve_shared(&mr->accounting, request->bytes);
    rmm__location_unreserve(mr->accounting.location, request->bytes);
}

static bool remember(rmm_resource_t *mr, void *ptr, size_t bytes)
{
    const rmm_pointer_map_entry_t block = {.ptr = ptr, .bytes = bytes, .owner = mr};
    bool has_room = false;

    rmm__mutex_lock(&lock);
    has_room = rmm__pointer_map_reserve(&blocks);
    if (has_room) {
        rmm__pointer_map_insert_entry(&blocks, &block);
    }
    rmm__mutex_unlock(&lock);
    return has_room;
}

static bool forget(const void *ptr, rmm_pointer_map_entry_t *block_out)
{
    bool is_known = false;

    rmm__mutex_lock(&lock);
    is_known = rmm__pointer_map_find_entry(&blocks, ptr, block_out) &&
               rmm__pointer_map_erase(&blocks, ptr);
    rmm__mutex_unlock(&lock);
    return is_known;
}

/* The free of that block was not seen, so its stream is unknown. */
static void forget_stale(uint64_t address)
{
    const rmm_diag_block_v1_t stale = {
        .address = address, .flags = RMM_DIAG_BLOCK_SYNC};

    (void)rmm_diag_driver_free_v1(&stale);
}

rmm_status_t rmm_diag_driver_alloc_v1(const rmm_diag_block_v1_t *block)
{
    rmm_resource_t *mr = NULL;
    rmm_status_t status = RMM_OK;
    rmm_request_t request;
    void *ptr = NULL;

    RMM_CHECK_ARG(block != NULL, "block is NULL");
    RMM_CHECK_ARG(
        block->address != 0 && block->bytes != 0, "block has no address or no bytes");
    RMM_CHECK_ARG((block->flags & ~FLAGS) == 0, "flags has an unknown bit");
    if (atomic_load_explicit(&is_over, memory_order_relaxed)) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED, "the program's own memory is no longer counted");
    }
    status = resource_of(block->device, &mr);
    if (status != RMM_OK) {
        return status;
    }
    if (rmm__resource_is_forked(mr)) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED, "memory of a forked child is not counted");
    }
    forget_stale(block->address);
    request = request_of(block->bytes, block->stream);
    ptr = (void *)(uintptr_t)block->address;
    if (!remember(mr, ptr, block->bytes)) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    count_up(mr, ptr, &request, block->flags);
    return RMM_OK;
}

uint64_t rmm_diag_driver_free_v1(const rmm_diag_block_v1_t *block)
{
    rmm_pointer_map_entry_t known;
    rmm_request_t request;

    if (block == NULL || block->address == 0 ||
        !forget((const void *)(uintptr_t)block->address, &known) ||
        rmm__resource_is_forked(known.owner)) {
        return 0;
    }
    request = request_of(known.bytes, block->stream);
    count_down(known.owner, known.ptr, &request, block->flags);
    return known.bytes;
}

void rmm_diag_driver_forget_v1(void)
{
    rmm_pointer_map_entry_t block;
    size_t from = 0;
    bool is_left = true;

    atomic_store_explicit(&is_over, true, memory_order_relaxed);
    while (is_left) {
        rmm__mutex_lock(&lock);
        is_left = rmm__pointer_map_any(&blocks, &from, &block);
        rmm__mutex_unlock(&lock);
        if (is_left) {
            forget_stale((uint64_t)(uintptr_t)block.ptr);
        }
    }
}

bool rmm_diag_in_library_v1(void)
{
    return rmm__driver_in_own() || rmm__callback_is_entered();
}

bool rmm_diag_copies_v1(void)
{
    return rmm__driver_in_own();
}
