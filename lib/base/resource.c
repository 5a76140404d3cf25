/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls on any resource: argument checks, reports of each call to diagnosis and
 * trace, the reference count, and the list of all resources of the process.
 *
 * Why a list: in a forked child neither CUDA nor the locks of the parent's other threads
 * survive, yet the child's exit handlers may still free. The child handler replaces
 * every ops table by one that refuses, which costs the fast path nothing.
 *
 * Locking: `registry` protects the list. It is held over fork() (fork.h), so the child
 * finds the list whole.
 */
#include <rmm/resource.h>

#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/callback.h"
#include "base/copies.h"
#include "base/diag_attach.h"
#include "base/forked.h"
#include "base/limits.h"
#include "base/request_thread.h"
#include "base/resource_impl.h"
#include "core/assert.h"
#include "core/fork.h"
#include "core/host_memory.h"
#include "core/mutex.h"
#include "core/nvtx.h"
#include "core/uncancelled.h"
#include "driver/driver.h"
#include "log/limit.h"
#include "log/log.h"
#include "publish/refusal_ring.h"
#include "publish/trace.h"

#define FAILURES_LOGGED_PER_SECOND 10

static rmm_mutex_t registry = RMM_MUTEX_INITIALIZER;
static rmm_resource_t *registry_head, *registry_tail; /* in the order of creation */
static _Atomic(uint32_t) last_instance_id;

/* --- in a forked child ------------------------------------------------------------ */

bool rmm__resource_is_adaptor(const rmm_resource_t *mr)
{
    return mr->upstream != NULL &&
           !atomic_load_explicit(&mr->ops, memory_order_relaxed)->owns_blocks &&
           strcmp(rmm_resource_type(mr), "binning") != 0;
}

bool rmm__resource_is_forked(const rmm_resource_t *mr)
{
    return atomic_load_explicit(&mr->ops, memory_order_relaxed) == &rmm__forked_ops;
}

static void refuse_in_child(void)
{
    for (rmm_resource_t *mr = registry_head; mr != NULL; mr = mr->next) {
        atomic_store_explicit(&mr->ops, &rmm__forked_ops, memory_order_relaxed);
    }
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_REGISTRY, &registry, refuse_in_child);
}

/* --- the base --------------------------------------------------------------------- */

static void registry_add(rmm_resource_t *mr)
{
    rmm__mutex_lock(&registry);
    mr->next = NULL;
    mr->previous = registry_tail;
    if (registry_tail != NULL) {
        registry_tail->next = mr;
    } else {
        registry_head = mr;
    }
    registry_tail = mr;
    rmm__mutex_unlock(&registry);
}

static void registry_remove(rmm_resource_t *mr)
{
    rmm__mutex_lock(&registry);
    if (mr->previous != NULL) {
        mr->previous->next = mr->next;
    } else {
        registry_head = mr->next;
    }
    if (mr->next != NULL) {
        mr->next->previous = mr->previous;
    } else {
        registry_tail = mr->previous;
    }
    rmm__mutex_unlock(&registry);
}

static bool is_used(const rmm_resource_t *mr)
{
    rmm_accounting_sums_t sums;

    rmm__accounting_sums(&mr->accounting, &sums);
    return sums.total_count != 0;
}

rmm_resource_t *rmm__resource_next_used(rmm_resource_t *last)
{
    rmm_resource_t *mr;

    rmm__mutex_lock(&registry);
    mr = last != NULL ? last->next : registry_head; /* retained: it is in the list */
    while (mr != NULL && !(is_used(mr) && rmm__resource_try_retain(mr))) {
        mr = mr->next;
    }
    rmm__mutex_unlock(&registry);
    rmm_resource_release(last);
    return mr;
}

/* Opens the segment and this device's location in it; the first resource of a device pays.
 * Pinned memory has a device for its calls, and the host for its location. */
static rmm_status_t open_place(const rmm_resource_desc_t *desc, uint32_t *location_out)
{
    int device = desc->device;
    rmm_status_t status;
    const rmm_driver_t *driver;
    rmm_device_info_t info;
    int error;

    if (device < 0) {
        rmm__publish_open("none");
        *location_out = RMM_SEGMENT_HOST_LOCATION;
        return RMM_OK;
    }
    if (device >= (int)RMM_SEGMENT_DEVICES) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED, "device %d: only %u devices are supported", device,
            RMM_SEGMENT_DEVICES);
    }
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    error = driver->device_info(device, &info);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(driver, error, "reading the device's properties");
    }
    rmm__publish_open(driver->name);
    *location_out = RMM_SEGMENT_HOST_LOCATION;
    if (desc->in_host_memory) {
        return RMM_OK;
    }
    rmm__location_open(
        (uint32_t)device,
        &(rmm_location_identity_t){
            info.uuid, info.pci_bus_id, info.name, info.capacity_bytes});
    *location_out = (uint32_t)device;
    return RMM_OK;
}

static rmm_status_t open_accounting(rmm_resource_t *mr, const rmm_resource_desc_t *desc)
{
    uint32_t location = RMM_SEGMENT_HOST_LOCATION;
    rmm_status_t status = RMM_OK;

    if (desc->upstream != NULL) { /* of the same memory */
        location = desc->upstream->accounting.location;
    } else {
        status = open_place(desc, &location);
    }
    if (status != RMM_OK) {
        return status;
    }
    return rmm__accounting_open(
        &mr->accounting,
        &(rmm_accounting_desc_t){
            .type = desc->ops->type_name,
            .name = mr->name,
            .instance_id = mr->instance_id,
            .upstream_id = desc->upstream != NULL ? desc->upstream->instance_id : 0,
            .location = location,
            .has_blocks = desc->ops->list_blocks != NULL,
        });
}

rmm_status_t rmm__resource_init(rmm_resource_t *mr, const rmm_resource_desc_t *desc)
{
    rmm_status_t status;

    mr->magic = RMM_RESOURCE_MAGIC;
    mr->instance_id =
        1 + atomic_fetch_add_explicit(&last_instance_id, 1, memory_order_relaxed);
    atomic_init(&mr->ops, desc->ops);
    atomic_init(&mr->references, 1);
    atomic_init(&mr->zero_count, 0);
    atomic_init(&mr->null_bytes, 0);
    atomic_init(&mr->promised_bytes, 0);
    atomic_init(&mr->limit_told, 0);
    atomic_init(&mr->user_data, NULL);
    mr->properties = desc->properties;
    mr->device = desc->device;
    mr->name = rmm__strdup(desc->name != NULL ? desc->name : desc->ops->type_name);
    if (mr->name == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    status = open_accounting(mr, desc);
    if (status != RMM_OK) {
        goto err_free_name;
    }
    mr->upstream = desc->upstream != NULL ? rmm_resource_retain(desc->upstream) : NULL;
    registry_add(mr);
    rmm__copies_use();
    rmm__request_thread_use();
    return RMM_OK;

err_free_name:
    rmm__free(mr->name);
    return status;
}

rmm_status_t rmm__resource_init_over(
    rmm_resource_t *mr, const rmm_resource_ops_t *ops, const char *name,
    rmm_resource_t *upstream)
{
    return rmm__resource_init(
        mr, &(rmm_resource_desc_t){
                .ops = ops,
                .name = name,
                .upstream = upstream,
                .properties = rmm_resource_properties(upstream),
                .device = upstream->device,
            });
}

/* Subtract the live bytes of users from the location: the resource that held them ends. */
static void forget_outstanding(rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_accounting_sums_t sums;

    if (atomic_load_explicit(&mr->ops, memory_order_relaxed)->owns_blocks) {
        rmm__accounting_stats(&mr->accounting, &stats);
        rmm__accounting_sums(&mr->accounting, &sums);
        rmm__location_forget(
            &mr->accounting, &(rmm_location_left_t){
                                 .bytes = stats.current_bytes,
                                 .count = stats.current_count,
                                 .padding = sums.padding_bytes});
    }
}

void rmm__resource_fini(rmm_resource_t *mr)
{
    rmm_resource_t *upstream = mr->upstream;

    registry_remove(mr);
    if (!rmm__resource_is_forked(mr)) { /* the child's figures never had it */
        forget_outstanding(mr);
        rmm__location_end(&mr->accounting);
    }
    rmm__accounting_close(&mr->accounting);
    rmm__free(mr->name);
    mr->magic = 0;
    rmm_resource_release(upstream);
}

/* --- public calls ----------------------------------------------------------------- */

static bool align_is_valid(size_t align)
{
    return (align & (align - 1)) == 0 && align <= RMM_ALIGN_MAX;
}

static rmm_request_t user_request(size_t bytes, size_t align, rmm_stream_t stream)
{
    return (rmm_request_t){
        .bytes = bytes,
        .align = align > RMM_ALIGN_DEFAULT ? align : RMM_ALIGN_DEFAULT,
        .stream = stream,
        .user = !rmm__callback_is_entered(),
    };
}

RMM_COLD static rmm_status_t too_large(rmm_resource_t *mr, size_t bytes)
{
    rmm__accounting_oom(&mr->accounting);
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY, "%s '%s': %zu bytes do not fit in an address space",
        rmm_resource_type(mr), mr->name, bytes);
}

RMM_COLD void rmm__resource_trace(
    const rmm_resource_t *mr, uint32_t action, const void *ptr,
    const rmm_request_t *request)
{
    const rmm_event_t event = {
        .action = action,
        .pointer = (uint64_t)(uintptr_t)ptr,
        .bytes = request->bytes,
        .stream = (uint64_t)(uintptr_t)request->stream,
    };

    rmm__trace_put(&event, mr->device, mr->instance_id);
}

/* Trace a user's call if the trace is on; a free before the block can be allocated again. */
static inline void trace(
    const rmm_resource_t *mr, uint32_t action, const void *ptr,
    const rmm_request_t *request)
{
    if (rmm__trace_is_on() && request->user) {
        rmm__resource_trace(mr, action, ptr, request);
    }
}

/* The level of a failure that the program gets. Out of memory ends most programs, so it is
 * shown by default. */
static rmm_log_level_t failure_level(rmm_status_t status)
{
    return status == RMM_ERR_OUT_OF_MEMORY ? RMM_LEVEL_ERROR : RMM_LEVEL_INFO;
}

/* A program may handle the failure, and repeat the call many times. */
RMM_COLD static void
log_failure(const rmm_resource_t *mr, const rmm_request_t *request, rmm_status_t status)
{
    static rmm_log_limit_t limits[2]; /* other failures leave room for short memory */
    const rmm_log_level_t level = failure_level(status);
    char more[64] = "";
    uint64_t left_out;

    if (!rmm__log_limit_allows(
            &limits[level == RMM_LEVEL_ERROR], FAILURES_LOGGED_PER_SECOND, &left_out)) {
        return;
    }
    if (left_out != 0) {
        snprintf(more, sizeof(more), " (and %" PRIu64 " more since)", left_out);
    }
    RMM_LOG_AT(
        level, "%s '%s' (%" PRIu32 "): %zu bytes on device %d failed: %s: %s%s",
        rmm_resource_type(mr), mr->name, mr->instance_id, request->bytes, mr->device,
        rmm_status_name(status), rmm_last_error_message(), more);
}

static rmm_status_t
alloc_failed(rmm_resource_t *mr, const rmm_request_t *request, rmm_status_t status)
{
    if (status == RMM_ERR_OUT_OF_MEMORY && request->user) {
        rmm__location_oom(mr->accounting.location);
        const rmm_refused_by_t by = rmm__limits_take_refusal();

        rmm__refusal_put(&mr->accounting, request->bytes, &by);
    }
    trace(mr, RMM_EVENT_FAILURE, NULL, request);
    if (request->user && rmm__log_is_on(failure_level(status))) {
        log_failure(mr, request, status);
    }
    return status;
}

/* Without a listener nothing is noted of the block of such a request. */
static inline bool is_usual(const rmm_request_t *request)
{
    return request->user && request->bytes != 0;
}

static uint32_t order_of(const rmm_resource_t *mr, const rmm_request_t *request)
{
    bool is_ready =
        atomic_load_explicit(&mr->ops, memory_order_relaxed)->ready_on_all_streams;

    return (is_ready ? 0 : RMM_DIAG_BLOCK_IN_STREAM_ORDER) |
           (request->sync ? RMM_DIAG_BLOCK_SYNC : 0);
}

static uint32_t access_of(const rmm_resource_t *mr)
{
    return (mr->properties & RMM_HOST_ACCESSIBLE) != 0 ? 0 : RMM_DIAG_BLOCK_GPU_ONLY;
}

/* The call as it is reported. Pinned memory has a device, and is the host's all the same. */
static rmm_annotate_block_t
reported(const rmm_resource_t *mr, const void *ptr, const rmm_request_t *request)
{
    bool is_on_host = mr->accounting.location == RMM_SEGMENT_HOST_LOCATION;

    return (rmm_annotate_block_t){
        .ptr = ptr,
        .bytes = request->bytes,
        .stream = request->stream,
        .resource_id = mr->instance_id,
        .device = is_on_host ? -1 : mr->device,
        .flags = order_of(mr, request),
        .in_callback = !request->user,
    };
}

RMM_COLD void rmm__resource_tell_wrong_size(
    rmm_resource_t *mr, const void *ptr, const rmm_request_t *request, size_t bytes)
{
    if (rmm__diag_is_attached()) {
        const rmm_annotate_block_t block = reported(mr, ptr, request);

        rmm__diag_report_wrong_size(&block, bytes);
    }
}

RMM_COLD static void note_alloc(
    rmm_resource_t *mr, const rmm_request_t *request, const void *ptr,
    const rmm_block_facts_t *facts)
{
    trace(mr, RMM_EVENT_ALLOCATE, ptr, request);
    if (!request->user && request->bytes != 0) {
        rmm__callback_count();
    }
    if (request->bytes == 0) {
        atomic_fetch_add_explicit(&mr->zero_count, 1, memory_order_relaxed);
    } else if (rmm__diag_may_ask()) {
        rmm_annotate_block_t block = reported(mr, ptr, request);

        block.end = facts->end;
        block.resource_type = mr->accounting.slot->type;
        block.resource_name = mr->accounting.slot->name;
        block.flags |= facts->flags | access_of(mr);
        rmm__diag_report_alloc(&block);
    }
}

/* End an allocation that failed, or that a log, a trace or a diagnosis notes. */
RMM_COLD static rmm_status_t end_unusual(
    rmm_resource_t *mr, const rmm_request_t *request, rmm_status_t status,
    void **ptr_out)
{
    if (status != RMM_OK) {
        return alloc_failed(mr, request, status);
    }
    note_alloc(mr, request, *ptr_out, &(rmm_block_facts_t){.end = 0});
    return RMM_OK;
}

/* The one question of the fast path: an operator has a request, the trace is on, or a diagnosis is
 * attached or may be. */
static inline bool is_attended(void)
{
    return rmm__requests_or_trace() || rmm__diag_may_ask();
}

/* The answer was yes. */
RMM_COLD static rmm_status_t
allocate_attended(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    rmm_request_t asked = *request;
    rmm_block_facts_t facts = {.end = 0};
    rmm_status_t status;

    if (request->user && rmm__diag_may_ask()) {
        (void)rmm__diag_wants_guards(); /* their room is known from here on */
        asked.facts_out = &facts;
    }
    if (request->user) {
        rmm__nvtx_begin_alloc(request->bytes);
    }
    status = rmm__resource_alloc(mr, &asked, ptr_out);
    if (request->user) {
        rmm__nvtx_end();
    }
    if (status != RMM_OK) {
        return alloc_failed(mr, request, status);
    }
    note_alloc(mr, request, *ptr_out, &facts);
    return RMM_OK;
}

RMM_HOT_INLINE rmm_status_t allocate(
    rmm_resource_t *mr, size_t bytes, size_t align, rmm_stream_t stream, bool sync,
    void **ptr_out)
{
    rmm_request_t request = user_request(bytes, align, stream);
    rmm_status_t status;

    request.sync = sync;
    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    RMM_CHECK_ARG(ptr_out != NULL, "ptr_out is NULL");
    RMM_CHECK_ALIGN(
        align_is_valid(align), "align is not a power of two up to RMM_ALIGN_MAX");
    RMM_ASSERT(mr->magic == RMM_RESOURCE_MAGIC && "resource was released");
    if (bytes > PTRDIFF_MAX) {
        return alloc_failed(mr, &request, too_large(mr, bytes));
    }
    if (is_attended()) {
        return allocate_attended(mr, &request, ptr_out);
    }

    if (request.user) {
        rmm__nvtx_begin_alloc(bytes);
    }
    status = rmm__resource_alloc_unlimited(mr, &request, ptr_out);
    if (request.user) {
        rmm__nvtx_end();
    }
    if (__builtin_expect(status == RMM_OK, true) && is_usual(&request)) {
        return RMM_OK;
    }
    return end_unusual(mr, &request, status, ptr_out);
}

rmm_status_t rmm_resource_alloc(
    rmm_resource_t *mr, size_t bytes, size_t align, rmm_stream_t stream, void **ptr_out)
{
    return allocate(mr, bytes, align, stream, false, ptr_out);
}

bool rmm__figure_take(_Atomic(uint64_t) *figure, uint64_t amount)
{
    uint64_t value = atomic_load_explicit(figure, memory_order_relaxed);

    while (value >= amount) {
        if (atomic_compare_exchange_weak_explicit(
                figure, &value, value - amount, memory_order_relaxed,
                memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

/* May an allocation of so many bytes have returned NULL? For 1 byte or more only the base
 * resource knows; it decides when the free reaches it. */
RMM_COLD static bool may_be_null(rmm_resource_t *mr, size_t bytes)
{
    const rmm_resource_t *base = mr;

    if (bytes == 0) {
        return rmm__figure_take(&mr->zero_count, 1);
    }
    while (base->upstream != NULL) {
        base = base->upstream;
    }
    return atomic_load_explicit(&base->null_bytes, memory_order_relaxed) >= bytes;
}

RMM_HOT_INLINE void
free_block(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    trace(mr, RMM_EVENT_FREE, ptr, request);
    if (request->user) {
        rmm__nvtx_begin_dealloc(request->bytes);
    }
    rmm__resource_dealloc(mr, ptr, request);
    if (request->user) {
        rmm__nvtx_end();
    }
}

/* Reported before another thread can get the block. */
RMM_COLD static void
free_reported(rmm_resource_t *mr, void *ptr, rmm_request_t *request)
{
    const rmm_annotate_block_t block = reported(mr, ptr, request);
    bool refused = false;
    size_t annotated_bytes = ptr != NULL ? rmm__diag_report_free(&block) : 0;

    request->refused = &refused;
    free_block(mr, ptr, request);
    if (refused) {
        rmm__diag_report_refusal(&block, annotated_bytes);
    }
}

RMM_COLD static void
refuse_no_bytes(rmm_resource_t *mr, const void *ptr, const rmm_request_t *request)
{
    rmm__resource_refuse_free(
        mr, ptr, request, "the size is 0, but only NULL has 0 bytes");
    if (rmm__diag_is_attached()) {
        const rmm_annotate_block_t block = reported(mr, ptr, request);

        rmm__diag_report_refusal(&block, 0);
    }
}

RMM_HOT_INLINE void deallocate(
    rmm_resource_t *mr, void *ptr, size_t bytes, size_t align, rmm_stream_t stream,
    bool sync)
{
    rmm_request_t request = user_request(bytes, align, stream);

    if (mr == NULL || (ptr == NULL && !may_be_null(mr, bytes))) {
        return;
    }
    request.sync = sync;
    RMM_ASSERT(mr->magic == RMM_RESOURCE_MAGIC && "resource was released");
    if (ptr != NULL && bytes == 0) {
        refuse_no_bytes(mr, ptr, &request);
        return;
    }
    if (rmm__diag_is_attached()) {
        free_reported(mr, ptr, &request);
        return;
    }
    free_block(mr, ptr, &request);
}

void rmm_resource_dealloc(
    rmm_resource_t *mr, void *ptr, size_t bytes, size_t align, rmm_stream_t stream)
{
    deallocate(mr, ptr, bytes, align, stream, false);
}

static bool is_to_be_waited_for(const rmm_resource_t *mr)
{
    return mr->device >= 0 &&
           !atomic_load_explicit(&mr->ops, memory_order_relaxed)->waits_for_sync;
}

rmm_status_t
rmm_resource_alloc_sync(rmm_resource_t *mr, size_t bytes, size_t align, void **ptr_out)
{
    void *ptr;
    rmm_status_t status;

    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    RMM_CHECK_ARG(ptr_out != NULL, "ptr_out is NULL");
    status = allocate(mr, bytes, align, RMM_STREAM_LEGACY, true, &ptr);
    if (status != RMM_OK) {
        return status;
    }
    if (is_to_be_waited_for(mr)) {
        status = rmm__driver_wait_default_stream(mr->device);
        if (status != RMM_OK) {
            deallocate(mr, ptr, bytes, align, RMM_STREAM_LEGACY, true);
            return status;
        }
    }
    *ptr_out = ptr;
    return RMM_OK;
}

void rmm_resource_dealloc_sync(
    rmm_resource_t *mr, void *ptr, size_t bytes, size_t align)
{
    if (mr != NULL && is_to_be_waited_for(mr) && !rmm__resource_is_forked(mr) &&
        rmm__driver_wait_default_stream(mr->device) != RMM_OK) {
        rmm__log_error(
            "%s '%s': waiting for the device before a free failed: %s",
            rmm_resource_type(mr), mr->name, rmm_last_error_message());
    }
    deallocate(mr, ptr, bytes, align, RMM_STREAM_LEGACY, true);
}

rmm_resource_t *rmm_resource_retain(rmm_resource_t *mr)
{
    if (mr != NULL) {
        atomic_fetch_add_explicit(&mr->references, 1, memory_order_relaxed);
    }
    return mr;
}

bool rmm__resource_try_retain(rmm_resource_t *mr)
{
    uint32_t references = atomic_load_explicit(&mr->references, memory_order_relaxed);

    while (references != 0) {
        if (atomic_compare_exchange_weak_explicit(
                &mr->references, &references, references + 1, memory_order_relaxed,
                memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

static void report_outstanding(const rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    rmm__accounting_stats(&mr->accounting, &stats);
    if (stats.current_bytes != 0) {
        rmm__log_error(
            "%s '%s' (%" PRIu32 "): last release with %" PRIu64
            " allocations of %" PRIu64 " bytes still live",
            rmm_resource_type(mr), mr->name, mr->instance_id, stats.current_count,
            stats.current_bytes);
    }
}

/* The functions of the program that free what it gave run in here. */
RMM_COLD static void end(rmm_resource_t *mr)
{
    RMM_UNCANCELLED;
    const rmm_resource_ops_t *ops =
        atomic_load_explicit(&mr->ops, memory_order_relaxed);

    if (ops != &rmm__forked_ops) {
        report_outstanding(mr);
    }
    ops->destroy(mr);
}

void rmm_resource_release(rmm_resource_t *mr)
{
    if (mr == NULL) {
        return;
    }
    RMM_ASSERT(mr->magic == RMM_RESOURCE_MAGIC && "resource was released");
    /* release: this thread's use of the resource is over; acquire: the last one sees all of it */
    if (atomic_fetch_sub_explicit(&mr->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    end(mr);
}

bool rmm_resource_is_equal(const rmm_resource_t *a, const rmm_resource_t *b)
{
    const rmm_resource_ops_t *ops;

    if (a == b || a == NULL || b == NULL) {
        return a == b;
    }
    ops = atomic_load_explicit(&a->ops, memory_order_relaxed);
    return ops->is_equal != NULL &&
           ops->is_equal ==
               atomic_load_explicit(&b->ops, memory_order_relaxed)->is_equal &&
           ops->is_equal(a, b);
}

const char *rmm_resource_type(const rmm_resource_t *mr)
{
    return atomic_load_explicit(&mr->ops, memory_order_relaxed)->type_name;
}

const char *rmm_resource_name(const rmm_resource_t *mr)
{
    return mr->name;
}

int rmm_resource_device(const rmm_resource_t *mr)
{
    return mr->device;
}

void rmm_resource_set_user_data(rmm_resource_t *mr, void *data)
{
    /* release: another thread that gets the pointer finds what it points to */
    atomic_store_explicit(&mr->user_data, data, memory_order_release);
}

void *rmm_resource_get_user_data(const rmm_resource_t *mr)
{
    /* acquire: pairs with rmm_resource_set_user_data() */
    return atomic_load_explicit(&mr->user_data, memory_order_acquire);
}

rmm_resource_t *rmm_resource_upstream(const rmm_resource_t *mr)
{
    return mr->upstream;
}

uint32_t rmm_resource_properties(const rmm_resource_t *mr)
{
    return mr->properties;
}

rmm_status_t rmm_resource_get_stats(const rmm_resource_t *mr, rmm_stats_t *out)
{
    void (*refresh)(const rmm_resource_t *);
    rmm_stats_t all = RMM_STATS_INIT;
    size_t bytes;

    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    RMM_CHECK_ARG(out != NULL, "out is NULL");
    RMM_CHECK_ARG(
        out->struct_size >= sizeof(out->struct_size),
        "struct_size is not set: use RMM_STATS_INIT");
    bytes = out->struct_size < sizeof(all) ? out->struct_size : sizeof(all);
    refresh = atomic_load_explicit(&mr->ops, memory_order_relaxed)->refresh;
    if (refresh != NULL) {
        refresh(mr);
    }
    rmm__accounting_stats(&mr->accounting, &all);
    all.struct_size = out->struct_size;
    memcpy(out, &all, bytes);
    return RMM_OK;
}

rmm_status_t rmm_resource_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    return atomic_load_explicit(&mr->ops, memory_order_relaxed)->trim(mr, keep_bytes);
}
