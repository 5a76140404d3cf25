/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits and trims of /rmm; see limits.h. An allocation comes here only if the daemon has requested
 * for something; otherwise it reads one word (resource_impl.h).
 *
 * A promise is the reservation of bytes that a thread is about to allocate. Those of growths stand
 * in the segment, for the daemon that shares out the limits of groups (segment_format.h): it
 * lowers a share and then reads held and promised bytes, a thread promises and then reads the
 * share.
 *
 * Order: a thread makes its promise before it reads how much is held, and takes the promise back
 * after the memory has been counted as held. So a thread that does not see another one's promise
 * sees its memory. For a few instructions it sees both. So a thread that finds no room tries
 * again before it refuses.
 */
#include "base/limits.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/block_report.h"
#include "base/resource_impl.h"
#include "driver/driver.h"
#include "log/log.h"
#include "segment/clean_text.h"

/* While a request fits beside the held bytes, but not beside the promises of other threads. */
#define ATTEMPTS 100
#define CALM_SHARE 8 /* once 1/8 of a limit is free again, the next refusal is logged */
#define FILE_BYTES 96
#define LIMIT_BYTES (RMM_SHARE_GROUP_BYTES + 128) /* what is reached, in words */

#define NO_LOCATION UINT32_MAX

static _Thread_local bool is_request_thread;
static _Thread_local rmm_refused_by_t refused_by;

/* By location: the limit, plus 1, whose refusal was logged, or 0. */
static _Atomic(uint64_t) told_growth[RMM_SEGMENT_LOCATIONS];

/* A limit, and what counts against it. */
typedef struct bound {
    uint32_t location; /* NO_LOCATION: of a resource */
    uint64_t limit_bytes;
    const rmm_control_share_t
        *share; /* of the limits of groups, if that is the limit */
    const _Atomic(uint64_t) *held;
    _Atomic(uint64_t) *promised;
    _Atomic(uint64_t) *told;
} bound_t;

static uint64_t held_of(const bound_t *bound)
{
    /* relaxed: the acquire of the promise makes visible what was counted before a promise that
     * it no longer sees was taken back */
    uint64_t held = rmm__figure_get(bound->held);

    return (int64_t)held > 0 ? held : 0;
}

static bool fits(const bound_t *bound, uint64_t bytes, uint64_t others)
{
    uint64_t used = held_of(bound) + others;

    return bytes <= bound->limit_bytes && used <= bound->limit_bytes - bytes;
}

static void take_back(const bound_t *bound, uint64_t bytes)
{
    /* release: a thread that no longer sees the promise sees what is held */
    atomic_fetch_sub_explicit(bound->promised, bytes, memory_order_release);
}

/* The limit of a location as it is now: the daemon changes it while threads grow. */
static void read_limit(bound_t *bound)
{
    if (bound->location != NO_LOCATION) {
        bound->limit_bytes =
            rmm__requests_location_limit(bound->location, &bound->share);
    }
}

static bool try_promise(bound_t *bound, uint64_t bytes)
{
    /* seq_cst: pairs with take_back(), and with the daemon that lowers a share and then reads
     * the promises: the share is read after the promise was made */
    uint64_t others =
        atomic_fetch_add_explicit(bound->promised, bytes, memory_order_seq_cst);

    read_limit(bound);
    if (fits(bound, bytes, others)) {
        return true;
    }
    take_back(bound, bytes);
    return false;
}

static bool promise(bound_t *bound, uint64_t bytes)
{
    read_limit(bound);
    for (int i = 0; i < ATTEMPTS && fits(bound, bytes, 0); i++) {
        if (try_promise(bound, bytes)) {
            return true;
        }
        (void)sched_yield();
    }
    return false;
}

/* --- refusals ------------------------------------------------------------------------- */

/* A pattern for a shell: only the daemon knows the numbers of the GPUs in these paths. */
static void file_of(const rmm_resource_t *mr, bool of_location, char name[FILE_BYTES])
{
    char resource[32] = "";

    if (!of_location) {
        snprintf(resource, sizeof(resource), "/mr/%" PRIu32 ".*", mr->instance_id);
    }
    snprintf(
        name, FILE_BYTES, "/rmm/proc/%ld/%s%s/limit_bytes", (long)getpid(),
        mr->accounting.location == RMM_SEGMENT_HOST_LOCATION ? "host" : "gpu*",
        resource);
}

/* Whether this is the first refusal of an episode. An episode ends when the limit changes or
 * much of it is free again. It does not end with each free, because a program that stays near its
 * limit would fill the log. */
static bool is_news(const bound_t *bound)
{
    uint64_t told = bound->limit_bytes + 1;

    return atomic_exchange_explicit(bound->told, told, memory_order_relaxed) != told;
}

static void note_calm(const bound_t *bound, uint64_t bytes)
{
    if (atomic_load_explicit(bound->told, memory_order_relaxed) != 0 &&
        held_of(bound) + bytes <=
            bound->limit_bytes - bound->limit_bytes / CALM_SHARE) {
        atomic_store_explicit(bound->told, 0, memory_order_relaxed);
    }
}

/* What is reached. The daemon may write another group's name meanwhile. */
static void
describe_limit(const rmm_resource_t *mr, const bound_t *bound, char what[LIMIT_BYTES])
{
    char file[FILE_BYTES];
    char group[RMM_SHARE_GROUP_BYTES];

    if (bound->share == NULL) {
        file_of(mr, bound->location != NO_LOCATION, file);
        snprintf(what, LIMIT_BYTES, "%s %" PRIu64, file, bound->limit_bytes);
        return;
    }
    memcpy(group, bound->share->group, sizeof(group));
    rmm__text_clean(group, sizeof(group));
    snprintf(
        what, LIMIT_BYTES,
        "the limit %" PRIu64 " of %s in /rmm/limits (this program's share is %" PRIu64
        ")",
        atomic_load_explicit(&bound->share->limit_bytes, memory_order_relaxed), group,
        bound->limit_bytes);
}

static rmm_status_t refuse(rmm_resource_t *mr, const bound_t *bound, uint64_t bytes)
{
    const bool of_group = bound->share != NULL;
    const char *counts = bound->location != NO_LOCATION ? "reserved" : "in use";
    char limit[LIMIT_BYTES];
    uint64_t held = held_of(bound);

    refused_by = (rmm_refused_by_t){
        .of = of_group                         ? RMM_LIMIT_OF_GROUP
              : bound->location != NO_LOCATION ? RMM_LIMIT_OF_PROCESS
                                               : RMM_LIMIT_OF_RESOURCE,
        .limit_bytes = of_group ? atomic_load_explicit(
                                      &bound->share->limit_bytes, memory_order_relaxed)
                                : bound->limit_bytes};
    describe_limit(mr, bound, limit);
    rmm__figure_add(&mr->accounting.slot->limit_count, 1);
    rmm__figure_add(&rmm__locations[mr->accounting.location].limit_count, 1);
    if (is_news(bound)) {
        rmm__log_warn(
            "%s '%s' (%" PRIu32 "): %s is reached: %" PRIu64
            " bytes are %s, refused %" PRIu64 " more",
            rmm_resource_type(mr), mr->name, mr->instance_id, limit, held, counts,
            bytes);
    }
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY,
        "%s '%s': %" PRIu64 " bytes would exceed %s (%" PRIu64 " bytes are %s)",
        rmm_resource_type(mr), mr->name, bytes, limit, held, counts);
}

rmm_refused_by_t rmm__limits_take_refusal(void)
{
    const rmm_refused_by_t by = refused_by;

    refused_by = (rmm_refused_by_t){.of = 0};
    return by;
}

/* --- trims ---------------------------------------------------------------------------- */

/* The device becomes this thread's, unless that would make its context. */
static bool stand_on(const rmm_driver_t *driver, int device)
{
    int active = 0;

    return driver->device_active(device, &active) == RMM_DRIVER_OK && active != 0 &&
           driver->device_set(device) == RMM_DRIVER_OK;
}

/* The request thread has not chosen a device. A scope that restored device 0 (a trim, the end of a
 * resource whose last reference is a walk's) would make a context there. */
static void stand_on_used_device(void)
{
    const rmm_driver_t *driver = rmm__driver_if_open();
    int count = 0;

    if (driver != NULL && driver->device_count(&count) == RMM_DRIVER_OK) {
        for (int device = 0; device < count && !stand_on(driver, device); device++) {
            continue;
        }
    }
}

static void trim(rmm_resource_t *mr, uint64_t keep_bytes)
{
    const rmm_driver_t *driver = rmm__driver_if_open();

    if (is_request_thread && mr->device >= 0 &&
        (driver == NULL || !stand_on(driver, mr->device))) {
        return; /* it has no memory there */
    }
    /* ignored: a resource that cannot be trimmed has no free memory */
    (void)atomic_load_explicit(&mr->ops, memory_order_relaxed)
        ->trim(mr, keep_bytes < PTRDIFF_MAX ? (size_t)keep_bytes : PTRDIFF_MAX);
}

static bool may_have_free(const rmm_resource_t *mr, uint32_t location)
{
    const rmm_segment_slot_t *slot = mr->accounting.slot;

    return mr->accounting.location == location &&
           atomic_load_explicit(&mr->ops, memory_order_relaxed)->owns_blocks &&
           rmm__figure_get(&slot->reserved_bytes) >
               rmm__figure_get(&slot->current_bytes);
}

/* Trims the location's resources one after the other until it holds no more than `most_bytes`.
 * Pools give back whole chunks. With `keeps` they keep a chunk whose release would leave the
 * location with less than `most_bytes`. */
static void trim_location(uint32_t location, uint64_t most_bytes, bool keeps)
{
    const _Atomic(uint64_t) *reserved = &rmm__locations[location].reserved_bytes;
    rmm_resource_t *mr = NULL;

    while (rmm__figure_get(reserved) > most_bytes &&
           (mr = rmm__resource_next_used(mr)) != NULL) {
        if (may_have_free(mr, location)) {
            uint64_t own = rmm__figure_get(&mr->accounting.slot->reserved_bytes);
            uint64_t over = rmm__figure_get(reserved) - most_bytes;

            trim(mr, keeps && own > over ? own - over : 0);
        }
    }
    rmm_resource_release(mr);
}

static void trim_resource(uint32_t instance_id, uint64_t keep_bytes)
{
    rmm_resource_t *mr = rmm__resource_next_used(NULL);

    while (mr != NULL && mr->instance_id != instance_id) {
        mr = rmm__resource_next_used(mr);
    }
    if (mr != NULL) {
        trim(mr, keep_bytes);
    }
    rmm_resource_release(mr);
}

static void obey_trim(void)
{
    rmm_trim_request_t request;
    rmm_error_kept_t kept;

    if (!rmm__requests_take_trim(&request)) {
        return;
    }
    rmm__error_keep(&kept); /* the caller does not see the error of a trim that fails */
    if (request.keep_bytes == RMM_TRIM_WITHDRAWN) {
        /* the daemon withdrew it: only acknowledge */
    } else if ((request.of & RMM_TRIM_LOCATION) == 0) {
        trim_resource(request.of, request.keep_bytes);
    } else if ((request.of & ~RMM_TRIM_LOCATION) < RMM_SEGMENT_LOCATIONS) {
        trim_location(request.of & ~RMM_TRIM_LOCATION, request.keep_bytes, true);
    }
    rmm__error_restore(&kept);
    rmm__requests_trimmed(&request);
}

/* --- an idle program -------------------------------------------------------------------- */

/* What the request thread found at its last look; used by that thread alone. */
typedef struct look {
    uint64_t limit;      /* plus 1: 0 stands for none */
    uint64_t live_bytes; /* of users */
    uint64_t free_bytes; /* which the trim for this limit has left */
} look_t;

static look_t looks[RMM_SEGMENT_LOCATIONS];

static uint64_t reserved_at(uint32_t location)
{
    return rmm__figure_get(&rmm__locations[location].reserved_bytes);
}

static uint64_t free_at(uint32_t location, uint64_t live_bytes)
{
    uint64_t reserved = reserved_at(location);

    return reserved > live_bytes ? reserved - live_bytes : 0;
}

/* Memory above a limit goes back when the limit is new, and when a program that did nothing since
 * the last look has freed more. One that allocates obeys by itself. */
static void obey_limit(uint32_t location)
{
    const rmm_control_share_t *share;
    const uint64_t limit_bytes = rmm__requests_location_limit(location, &share);
    const uint64_t live_bytes = rmm__location_live(location).bytes;
    look_t *look = &looks[location];
    bool is_new = look->limit != limit_bytes + 1;
    bool is_idle = look->live_bytes == live_bytes;

    look->limit = limit_bytes + 1;
    look->live_bytes = live_bytes;
    if (reserved_at(location) > limit_bytes &&
        (is_new || (is_idle && free_at(location, live_bytes) > look->free_bytes))) {
        trim_location(location, limit_bytes, true);
        trim_location(location, limit_bytes, false);
        look->free_bytes = free_at(location, live_bytes);
    }
}

void rmm__limits_obey_idle(void)
{
    if (!is_request_thread) {
        is_request_thread = true;
        stand_on_used_device();
    }
    obey_trim();
    rmm__block_report_obey();
    for (uint32_t i = 0; i < RMM_SEGMENT_LOCATIONS; i++) {
        obey_limit(i);
    }
}

/* --- growth --------------------------------------------------------------------------- */

static bound_t location_bound(const rmm_resource_t *mr)
{
    uint32_t location = mr->accounting.location;
    bound_t bound = {
        .location = location,
        .held = &rmm__locations[location].reserved_bytes,
        .promised = &rmm__locations[location].promised_bytes,
        .told = &told_growth[location]};

    read_limit(&bound);
    return bound;
}

/* A larger share, if that is what is missing. */
static bool promise_larger_share(bound_t *bound, uint64_t bytes)
{
    return bound->share != NULL && rmm__requests_ask_share(bound->location, bytes) &&
           promise(bound, bytes);
}

rmm_status_t
rmm__limits_begin_growth(rmm_resource_t *mr, uint64_t bytes, uint64_t *promised_out)
{
    bound_t bound = location_bound(mr);
    bool is_promised;

    refused_by.of = 0;
    if (bytes != 0 && rmm__requests_is_first(bound.location)) {
        (void)rmm__requests_ask_share(bound.location, bytes);
        read_limit(&bound);
    }
    if (bound.limit_bytes == RMM_SEGMENT_NO_LIMIT || bytes == 0) {
        return RMM_OK;
    }
    is_promised = promise(&bound, bytes) || promise_larger_share(&bound, bytes);
    if (!is_promised && bytes <= bound.limit_bytes) {
        trim_location(mr->accounting.location, bound.limit_bytes - bytes, false);
        is_promised = promise(&bound, bytes);
    }
    if (!is_promised) {
        return refuse(mr, &bound, bytes);
    }
    note_calm(&bound, bytes);
    *promised_out = bytes;
    return RMM_OK;
}

void rmm__limits_end_growth(const rmm_resource_t *mr, uint64_t promised)
{
    const bound_t bound = location_bound(mr);

    take_back(&bound, promised);
}

rmm_status_t rmm__growth_check(rmm_resource_t *mr, uint64_t bytes)
{
    bound_t bound = location_bound(mr);

    if (held_of(&bound) > bound.limit_bytes && bound.share != NULL &&
        rmm__requests_ask_share(bound.location, 0)) {
        read_limit(&bound);
    }
    return held_of(&bound) <= bound.limit_bytes || !rmm__requests_pending()
               ? RMM_OK
               : refuse(mr, &bound, bytes);
}

/* --- allocations ---------------------------------------------------------------------- */

RMM_COLD rmm_status_t
rmm__limits_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    bound_t bound = {
        .location = NO_LOCATION,
        .limit_bytes = rmm__requests_limit(&mr->accounting, mr->instance_id),
        .held = &mr->accounting.slot->current_bytes,
        .promised = &mr->promised_bytes,
        .told = &mr->limit_told};
    rmm_status_t status;

    if (request->user) { /* a resource that allocates may be amid a change of its own */
        obey_trim();
        rmm__block_report_obey();
    }
    if (bound.limit_bytes == RMM_SEGMENT_NO_LIMIT || request->bytes == 0) {
        return rmm__resource_alloc_unlimited(mr, request, ptr_out);
    }
    if (!promise(&bound, request->bytes)) {
        rmm__accounting_oom(&mr->accounting);
        return refuse(mr, &bound, request->bytes);
    }
    note_calm(&bound, request->bytes);
    status = rmm__resource_alloc_unlimited(mr, request, ptr_out);
    take_back(&bound, request->bytes);
    return status;
}
