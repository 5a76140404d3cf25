/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One diagnosis library may attach to this one. The CUDA driver (or the simulated one) loads
 * the library that CUDA_INJECTION64_PATH names during its own initialisation, inside
 * rmm__driver(). The library cannot attach at that time, because the driver table is not
 * complete. So this file looks for the library once, before it reports the first block, when
 * the driver is open and no lock is held.
 *
 * The same state shows whether a tool takes annotations (annotate.c), with or without a
 * diagnosis library.
 *
 * Invariants:
 *  - hooks are written once, before has_hooks becomes true (release/acquire).
 *  - no block is missed: while one thread looks, other threads wait (pthread_once).
 *  - a forked child reports nothing: it does not inherit the library's output.
 */
#include "base/diag_attach.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"
#include "core/fork.h"
#include "driver/driver.h"
#include "publish/accounting.h"

_Atomic(uint32_t) rmm__diag_state;
_Atomic(size_t) rmm__diag_guard_bytes;

static rmm_diag_hooks_v1_t hooks;
static const rmm_driver_t *driver; /* written before has_hooks is true */
static atomic_bool has_hooks;
static atomic_bool claimed; /* someone is attached, or about to be */
static pthread_once_t look_once = PTHREAD_ONCE_INIT;
static _Thread_local bool looking;        /* attach is called by look_for_injected() */
static _Thread_local bool found_attached; /* and has succeeded */

/* If a process forks before it has looked for the library, the child looks itself. */
static void forget_in_child(void)
{
    atomic_store_explicit(&has_hooks, false, memory_order_relaxed);
    atomic_store_explicit(&rmm__diag_guard_bytes, 0, memory_order_relaxed);
    if (atomic_load_explicit(&rmm__diag_state, memory_order_relaxed) !=
        RMM_DIAG_STATE_UNKNOWN) {
        atomic_store_explicit(
            &rmm__diag_state, RMM_DIAG_STATE_NONE, memory_order_relaxed);
    }
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_DIAGNOSIS, NULL, forget_in_child);
}

void rmm__diag_listen(void)
{
    /* relaxed: what is behind it has flags of its own, has_hooks and rmm__annotate_on */
    atomic_store_explicit(
        &rmm__diag_state, RMM_DIAG_STATE_ATTACHED, memory_order_relaxed);
}

static void use_hooks(void)
{
    atomic_store_explicit(
        &rmm__diag_guard_bytes, hooks.guard_bytes, memory_order_relaxed);
    /* release: pairs with is_diagnosed() */
    atomic_store_explicit(&has_hooks, true, memory_order_release);
    rmm__diag_listen();
}

/* --- services ---------------------------------------------------------------------- */

static struct {
    _Atomic(rmm_diag_event_fn) fn;
    _Atomic(void *) context;
} observer;

/* Not what the library itself copies: a pool that sleeps knows where blocks end. */
static void on_event(void *unused, const rmm_diag_event_v1_t *event)
{
    /* acquire: pairs with observe(), for the context */
    rmm_diag_event_fn fn = atomic_load_explicit(&observer.fn, memory_order_acquire);

    (void)unused;
    if (fn != NULL && (event->kind != RMM_DIAG_COPY || !rmm__driver_in_own())) {
        fn(atomic_load_explicit(&observer.context, memory_order_relaxed), event);
    }
}

static void observe(rmm_diag_event_fn fn, void *context)
{
    atomic_store_explicit(&observer.context, context, memory_order_relaxed);
    /* release: pairs with on_event() */
    atomic_store_explicit(&observer.fn, fn, memory_order_release);
    driver->observe(fn != NULL ? on_event : NULL, NULL);
}

static rmm_status_t side_file(const char *suffix, size_t bytes, void **memory_out)
{
    RMM_CHECK_ARG(suffix != NULL && memory_out != NULL, "an argument is NULL");
    rmm__publish_open(driver->name);
    return rmm__publish_side_file(suffix, bytes, memory_out);
}

static int stream_facts(rmm_stream_t stream, uint32_t *flags_out, uint64_t *id_out)
{
    rmm_stream_key_t key = {0, 0};
    int error = driver->stream_flags(stream, flags_out);

    if (error == RMM_DRIVER_OK) {
        error = driver->stream_key(stream, &key);
    }
    *id_out =
        error == RMM_DRIVER_OK && key.capture_id == 0 ? key.stream_id : UINT64_MAX;
    return error;
}

static void fill_services(rmm_diag_services_v1_t *services)
{
    services->driver_name = driver->name;
    services->observe = driver->observe != NULL ? observe : NULL;
    services->side_file = side_file;
    services->block_bytes = sizeof(rmm_diag_block_v1_t);
    services->queue = driver->queue;
    services->stream_facts = driver->observe != NULL ? stream_facts : NULL;
}

rmm_status_t rmm_diag_attach_v1(
    const rmm_diag_hooks_v1_t *new_hooks, rmm_diag_services_v1_t *services_out)
{
    const rmm_driver_t *table = NULL;
    rmm_status_t status = RMM_OK;

    RMM_CHECK_ARG(new_hooks != NULL && services_out != NULL, "an argument is NULL");
    RMM_CHECK_ARG(
        new_hooks->struct_size >= sizeof(hooks) &&
            services_out->struct_size >= sizeof(*services_out),
        "struct_size is smaller than that of version 1");
    RMM_CHECK_ARG(
        new_hooks->on_alloc != NULL && new_hooks->on_free != NULL, "a hook is NULL");
    table = rmm__driver(&status);
    if (table == NULL) {
        return status;
    }
    /* relaxed: the winner alone writes, readers check the state */
    if (atomic_exchange_explicit(&claimed, true, memory_order_relaxed)) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED, "a diagnosis library is attached already");
    }
    hooks = *new_hooks;
    driver = table;
    fill_services(services_out);
    found_attached = looking;
    if (!looking) {
        use_hooks();
    }
    return RMM_OK;
}

/* --- finding it -------------------------------------------------------------------- */

static rmm_diag_injected_fn find_injected(void)
{
    const char *path = secure_getenv("CUDA_INJECTION64_PATH");
    void *library = NULL;
    void *symbol = NULL;
    rmm_diag_injected_fn function = NULL;

    if (path != NULL && path[0] != '\0') {
        library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD); /* kept: it stays loaded */
    }
    symbol = dlsym(library != NULL ? library : RTLD_DEFAULT, RMM_DIAG_INJECTED_SYMBOL);
    if (symbol == NULL) {
        (void)dlerror(); /* leave no message for the program to find */
    }
    memcpy(&function, &symbol, sizeof(function));
    return function;
}

static void look_for_injected(void)
{
    rmm_diag_injected_fn injected = find_injected();
    uint32_t unknown = RMM_DIAG_STATE_UNKNOWN;

    if (injected != NULL) {
        looking = true;
        injected(rmm_diag_attach_v1);
        looking = false;
    }
    if (found_attached) {
        use_hooks();
        return;
    }
    /* fails if a library has attached itself since then */
    atomic_compare_exchange_strong_explicit(
        &rmm__diag_state, &unknown, RMM_DIAG_STATE_NONE, memory_order_relaxed,
        memory_order_relaxed);
}

/* Blocks that a program's function allocates in a callback are not reported. */
static bool is_diagnosed(const rmm_annotate_block_t *block)
{
    /* acquire: pairs with use_hooks(); hooks and driver are written */
    return !block->in_callback &&
           atomic_load_explicit(&has_hooks, memory_order_acquire);
}

/* --- reporting --------------------------------------------------------------------- */

void rmm__diag_report_gone(const void *ptr, size_t bytes)
{
    /* acquire: as in is_diagnosed() */
    if (atomic_load_explicit(&has_hooks, memory_order_acquire) &&
        hooks.on_gone != NULL) {
        hooks.on_gone(hooks.context, (uint64_t)(uintptr_t)ptr, bytes);
    }
}

void rmm__diag_report_pool(const void *ptr, size_t bytes)
{
    /* acquire: as in is_diagnosed() */
    if (atomic_load_explicit(&has_hooks, memory_order_acquire) &&
        hooks.on_pool != NULL) {
        hooks.on_pool(hooks.context, (uint64_t)(uintptr_t)ptr, bytes);
    }
}

static rmm_diag_block_v1_t describe(const rmm_annotate_block_t *reported)
{
    rmm_stream_key_t key = {0, 0};
    rmm_diag_block_v1_t block = {
        .address = (uint64_t)(uintptr_t)reported->ptr,
        .bytes = reported->bytes,
        .stream_id = UINT64_MAX,
        .resource_id = reported->resource_id,
        .device = reported->device,
        .stream = reported->stream,
        .flags = reported->flags,
        .end = reported->end,
        .resource_type = reported->resource_type,
        .resource_name = reported->resource_name,
    };

    if (driver->stream_key(reported->stream, &key) == RMM_DRIVER_OK) {
        block.stream_id = key.stream_id;
        block.flags |= key.capture_id != 0 ? RMM_DIAG_BLOCK_CAPTURED : 0;
    }
    return block;
}

void rmm__diag_report_alloc(const rmm_annotate_block_t *block)
{
    rmm__annotate_block(block);
    if (looking) {
        return; /* the injected library allocates while it attaches: its own business */
    }
    pthread_once(&look_once, look_for_injected);
    if (is_diagnosed(block)) {
        rmm_diag_block_v1_t described = describe(block);

        hooks.on_alloc(hooks.context, &described);
    } else {
        rmm__diag_report_gone(block->ptr, block->bytes);
    }
}

size_t rmm__diag_report_free(const rmm_annotate_block_t *block)
{
    if (is_diagnosed(block)) {
        rmm_diag_block_v1_t described = describe(block);

        hooks.on_free(hooks.context, &described);
    }
    return rmm__annotate_free(block);
}

void rmm__diag_report_refusal(const rmm_annotate_block_t *block, size_t annotated_bytes)
{
    rmm_annotate_block_t again = *block;

    if (is_diagnosed(block) && hooks.on_refused != NULL) {
        rmm_diag_block_v1_t described = describe(block);

        hooks.on_refused(hooks.context, &described);
    }
    if (annotated_bytes != 0) {
        again.bytes = annotated_bytes;
        rmm__annotate_block(&again);
    }
}

void rmm__diag_report_wrong_size(const rmm_annotate_block_t *passed, size_t bytes)
{
    if (is_diagnosed(passed) && hooks.on_refused != NULL) {
        rmm_diag_block_v1_t described = describe(passed);

        hooks.on_refused(hooks.context, &described);
        described.bytes = bytes;
        hooks.on_free(hooks.context, &described);
    }
}

void rmm__diag_look(void)
{
    if (!looking) {
        pthread_once(&look_once, look_for_injected);
    }
}

bool rmm__diag_may_quarantine(void)
{
    const char *bytes = getenv("RMM_DIAG_QUARANTINE");

    return bytes != NULL && bytes[0] != '\0' && strcmp(bytes, "0") != 0;
}

uint64_t rmm__diag_quarantine_bytes(void)
{
    /* acquire: as in is_diagnosed() */
    return atomic_load_explicit(&has_hooks, memory_order_acquire) &&
                   hooks.quarantine_bytes != NULL
               ? hooks.quarantine_bytes(hooks.context)
               : 0;
}

/* A variable of librmm-inject: without it the library is looked for at the first block. */
static bool may_be_injected(void)
{
    const char *modes = getenv("RMM_DIAG");

    return modes != NULL && modes[0] != '\0';
}

bool rmm__diag_wants_guards(void)
{
    if (atomic_load_explicit(&rmm__diag_state, memory_order_relaxed) ==
            RMM_DIAG_STATE_UNKNOWN &&
        may_be_injected()) {
        rmm__diag_look();
    }
    return atomic_load_explicit(&rmm__diag_guard_bytes, memory_order_relaxed) != 0;
}
