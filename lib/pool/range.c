/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory that an engine maps itself: one range of addresses, reserved at creation,
 * and pieces of physical memory mapped into it (range.h). The range is one run of blocks.
 * Addresses without memory are free in the heap `absent`, which serves no request. Growth
 * maps a part of it, which is then clean and merges with its neighbours. Only clean memory
 * is unmapped: no work of the GPU and no graph can use it.
 *
 * The range has many more addresses than the device has memory. Addresses cost nothing, since
 * the engine holds only mapped memory. So a live block that prevents a merge costs addresses
 * and no memory.
 */
#include "pool/range.h"

#include "core/clock.h"
#include "core/host_memory.h"

#define RANGE_TIMES 8  /* addresses, as a multiple of the device's memory */
#define PIECE_NS 40000 /* about what the driver needs for a piece (growth.c) */
/* Mapping may take this part of the time since the range was opened. */
#define TIME_SHARE 32

/* --- the time that mapping takes ------------------------------------------------------ */

uint64_t rmm__range_now_ns(void)
{
    return rmm__clock_ns(CLOCK_MONOTONIC);
}

void rmm__range_note_mapping(engine_t *engine, uint64_t begin_ns)
{
    uint64_t ns = rmm__range_now_ns() - begin_ns;

    rmm__mutex_lock(&engine->lock);
    engine->range.mapping_ns += ns;
    rmm__mutex_unlock(&engine->lock);
}

bool rmm__range_has_time_locked(const engine_t *engine, uint64_t pieces)
{
    const engine_range_t *range = &engine->range;
    uint64_t ns = rmm__range_now_ns() - range->begun_ns;

    return range->mapping_ns + pieces * PIECE_NS < ns / TIME_SHARE;
}

/* --- the range ------------------------------------------------------------------------- */

/* As many addresses as possible, at least the size of the device's memory. */
static int reserve_addresses(engine_t *engine, uint64_t capacity_bytes)
{
    engine_range_t *range = &engine->range;
    uint64_t granule = range->granule_bytes;
    uint64_t most = ENGINE_RUN_BYTES / granule * granule;
    uint64_t least = rmm__round_up(capacity_bytes, granule);
    uint64_t bytes = least < most / RANGE_TIMES ? least * RANGE_TIMES : most;
    void *address;
    int error;

    least = least < most ? least : most;
    for (;;) {
        error = engine->driver->address_reserve(&address, bytes);
        if (error == RMM_DRIVER_OK) {
            range->address = address;
            range->bytes = bytes;
            return error;
        }
        if (bytes == least) {
            return error;
        }
        bytes = bytes / 2 > least ? rmm__round_up(bytes / 2, granule) : least;
    }
}

/* Choose what the pieces can be used for. Network cards cost nothing where the device can. */
static int choose_flags(engine_t *engine, bool is_exportable)
{
    int has_rdma;
    int error =
        engine->driver->device_attribute(RMM_ATTRIBUTE_RDMA, engine->device, &has_rdma);

    if (error == RMM_DRIVER_OK && has_rdma != 0) {
        engine->range.physical_flags |= RMM_DRIVER_RDMA;
    }
    if (error == RMM_DRIVER_OK && is_exportable) {
        engine->range.physical_flags |= RMM_DRIVER_HANDLE_POSIX;
    }
    return error;
}

/* Fabric handles as well, where the device can and the system is set up for them, which only an
 * attempt tells. */
static int try_fabric(engine_t *engine, size_t granule)
{
    uint32_t flags = engine->range.physical_flags | RMM_DRIVER_HANDLE_FABRIC;
    rmm_driver_physical_t physical;
    int has_fabric;
    int error = engine->driver->device_attribute(
        RMM_ATTRIBUTE_FABRIC_HANDLES, engine->device, &has_fabric);

    if (error == RMM_DRIVER_OK && has_fabric != 0 &&
        engine->driver->physical_create(granule, flags, &physical) == RMM_DRIVER_OK) {
        engine->range.physical_flags = flags;
        error = engine->driver->physical_release(physical);
    }
    return error;
}

static int ask_device(engine_t *engine, const engine_plan_t *plan)
{
    rmm_device_info_t info;
    size_t granule;
    int error = engine->driver->device_info(engine->device, &info);

    if (error == RMM_DRIVER_OK) {
        error = choose_flags(engine, plan->is_exportable);
    }
    if (error == RMM_DRIVER_OK) {
        error = engine->driver->virtual_granularity(&granule);
    }
    if (error == RMM_DRIVER_OK && plan->is_exportable) {
        error = try_fabric(engine, granule);
    }
    if (error == RMM_DRIVER_OK && plan->shares_with_peers) {
        engine->range.peers = rmm__driver_peers(engine->driver, engine->device);
    }
    if (error == RMM_DRIVER_OK) {
        engine->range.granule_bytes = granule;
        engine->range.capacity_bytes = info.capacity_bytes;
        engine->range.begun_ns = rmm__range_now_ns();
        if (engine->maximum_bytes < UINT64_MAX - granule) {
            engine->maximum_bytes = rmm__round_up(engine->maximum_bytes, granule);
        }
        error = reserve_addresses(engine, info.capacity_bytes);
    }
    return error;
}

/* The range becomes the engine's only run. */
static rmm_status_t enter_range(engine_t *engine)
{
    engine_range_t *range = &engine->range;
    uint64_t unit = (uintptr_t)range->address / RMM_BLOCKS_UNIT;
    bool entered;

    rmm__mutex_lock(&engine->lock);
    entered =
        rmm__blocks_heap_create(engine->blocks, &range->absent) == RMM_BLOCKS_OK &&
        rmm__blocks_heap_create(engine->blocks, &range->lost) == RMM_BLOCKS_OK &&
        rmm__blocks_add(
            engine->blocks, range->absent, unit, rmm__engine_to_units(range->bytes),
            0) == RMM_BLOCKS_OK;
    engine->absent_units = entered ? range->bytes / RMM_BLOCKS_UNIT : 0;
    rmm__mutex_unlock(&engine->lock);
    return entered ? rmm__sleep_init(engine) : RMM_ERR_OUT_OF_HOST_MEMORY;
}

static rmm_status_t range_fill(engine_t *engine, uint64_t bytes)
{
    const rmm_blocks_request_t request = {rmm__engine_to_units(bytes), 1};

    return bytes <= engine->range.bytes ? rmm__range_grow(engine, &request)
                                        : rmm__range_no_addresses(engine, bytes);
}

static rmm_status_t range_open(engine_t *engine, const engine_plan_t *plan)
{
    rmm_driver_scope_t scope;
    rmm_status_t status = rmm__driver_require(
        engine->driver, RMM_ATTRIBUTE_VIRTUAL_MEMORY, engine->device,
        "cannot map virtual memory "
        "(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED is 0): create a pool "
        "over a cuda resource, without RMM_POOL_VIRTUAL");
    int error;

    if (status == RMM_OK && plan->is_exportable) {
        status = rmm__driver_require(
            engine->driver, RMM_ATTRIBUTE_POSIX_HANDLES, engine->device,
            "cannot share mapped memory with other processes "
            "(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED is 0): "
            "create "
            "the pool without RMM_POOL_EXPORTABLE");
    }
    if (status == RMM_OK) {
        status = rmm__driver_scope_enter(&scope, engine->driver, engine->device);
    }
    if (status != RMM_OK) {
        return status;
    }
    error = ask_device(engine, plan);
    rmm__driver_scope_leave(&scope);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(engine->driver, error, "reserving addresses");
    }
    return enter_range(engine);
}

static void close_pieces(engine_t *engine)
{
    engine_range_t *range = &engine->range;
    uint64_t left = 0;

    for (uint32_t i = 0; i < range->piece_count; i++) {
        if (!range->pieces[i].is_absent &&
            rmm__piece_end(engine, &range->pieces[i]) != RMM_DRIVER_OK) {
            left += rmm__piece_bytes(&range->pieces[i]);
        }
    }
    if (left == 0) {
        (void)engine->driver->address_free(range->address, range->bytes);
    }
    atomic_fetch_add_explicit(&engine->stuck_bytes, left, memory_order_relaxed);
}

static void range_fini(engine_t *engine, engine_end_t end)
{
    rmm_driver_scope_t scope;

    if (engine->range.address != NULL && end == ENGINE_END_IDLE &&
        rmm__driver_scope_enter(&scope, engine->driver, engine->device) == RMM_OK) {
        close_pieces(engine);
        rmm__driver_scope_leave(&scope);
    }
    rmm__sleep_fini(engine);
    rmm__free(engine->range.pieces);
}

const engine_source_ops_t rmm__engine_range = {
    .open = range_open,
    .fill = range_fill,
    .grow = rmm__range_grow,
    .can_grow_locked = rmm__range_can_grow_locked,
    .gather = rmm__range_gather,
    .trim = rmm__range_trim,
    .fini = range_fini,
};
