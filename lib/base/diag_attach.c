/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One diagnosis library may attach to this one. The CUDA driver (or the simulated one) loads
 * the library that CUDA_INJECTION64_PATH names during its own initialisation, inside
 * rmm__driver(). The library cannot attach at that time, because the driver table is not
 * complete. So this file looks for the library once, before it reports the first block, when
 * the driver is open and no lock is held.
 *
 * Invariants:
 *  - hooks are written once, before state becomes ATTACHED (release/acquire).
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

static rmm_diag_hooks_v1_t hooks;
static const rmm_driver_t *driver; /* written before state is ATTACHED */
static atomic_bool claimed;        /* someone is attached, or about to be */
static pthread_once_t look_once = PTHREAD_ONCE_INIT;
static _Thread_local bool looking;        /* attach is called by look_for_injected() */
static _Thread_local bool found_attached; /* and has succeeded */

/* If a process forks before it has looked for the library, the child looks itself. */
static void forget_in_child(void)
{
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

/* --- services ---------------------------------------------------------------------- */

static void observe(rmm_diag_event_fn fn, void *context)
{
    driver->observe(fn, context);
}

static rmm_status_t side_file(const char *suffix, size_t bytes, void **memory_out)
{
    RMM_CHECK_ARG(suffix != NULL && memory_out != NULL, "an argument is NULL");
    rmm__publish_open(driver->name);
    return rmm__publish_side_file(suffix, bytes, memory_out);
}

static void fill_services(rmm_diag_services_v1_t *services)
{
    services->driver_name = driver->name;
    services->observe = driver->observe != NULL ? observe : NULL;
    services->side_file = side_file;
}

rmm_status_t rmm_diag_attach_v1(
    const rmm_diag_hooks_v1_t *new_hooks, rmm_diag_services_v1_t *services_out)
{
    const rmm_driver_t *table = NULL;
    rmm_status_t status = RMM_OK;

    RMM_CHECK_ARG(new_hooks != NULL && services_out != NULL, "an argument is NULL");
    RMM_CHECK_ARG(
        new_hooks->struct_size >= sizeof(*new_hooks) &&
            services_out->struct_size >= sizeof(*services_out),
        "struct_size is smaller than version 1");
    RMM_CHECK_ARG(
        new_hooks->on_alloc != NULL && new_hooks->on_free != NULL, "a hook is NULL");
    table = rmm__driver(&status);
    if (table == NULL) {
        return status;
    }
    /* relaxed: the winner alone writes, readers go by the state */
    if (atomic_exchange_explicit(&claimed, true, memory_order_relaxed)) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED, "a diagnosis library is attached already");
    }
    hooks = *new_hooks;
    driver = table;
    fill_services(services_out);
    found_attached = looking;
    if (!looking) {
        /* release: pairs with is_attached() */
        atomic_store_explicit(
            &rmm__diag_state, RMM_DIAG_STATE_ATTACHED, memory_order_release);
    }
    return RMM_OK;
}

/* --- finding it -------------------------------------------------------------------- */

static rmm_diag_injected_fn find_injected(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
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
    /* release: pairs with is_attached(). Fails if someone attached by himself meanwhile. */
    atomic_compare_exchange_strong_explicit(
        &rmm__diag_state, &unknown,
        found_attached ? RMM_DIAG_STATE_ATTACHED : RMM_DIAG_STATE_NONE,
        memory_order_release, memory_order_relaxed);
}

static bool is_attached(void)
{
    /* acquire: pairs with the two stores of ATTACHED; hooks and driver are written */
    return atomic_load_explicit(&rmm__diag_state, memory_order_acquire) ==
           RMM_DIAG_STATE_ATTACHED;
}

/* --- reporting --------------------------------------------------------------------- */

static rmm_diag_block_v1_t
describe(rmm_diag_owner_t owner, const void *ptr, size_t bytes, rmm_stream_t stream)
{
    rmm_stream_key_t key = {0, 0};
    rmm_diag_block_v1_t block = {
        .address = (uint64_t)(uintptr_t)ptr,
        .bytes = bytes,
        .stream_id = UINT64_MAX,
        .resource_id = owner.resource_id,
        .device = owner.device,
    };

    if (driver->stream_key(stream, &key) == RMM_DRIVER_OK) {
        block.stream_id = key.stream_id;
    }
    return block;
}

void rmm__diag_report_alloc(
    rmm_diag_owner_t owner, const void *ptr, size_t bytes, rmm_stream_t stream)
{
    if (looking) {
        return; /* the injected library allocates while it attaches: its own business */
    }
    pthread_once(&look_once, look_for_injected);
    if (is_attached()) {
        rmm_diag_block_v1_t block = describe(owner, ptr, bytes, stream);

        hooks.on_alloc(hooks.context, &block);
    }
}

void rmm__diag_report_free(
    rmm_diag_owner_t owner, const void *ptr, size_t bytes, rmm_stream_t stream)
{
    if (is_attached()) {
        rmm_diag_block_v1_t block = describe(owner, ptr, bytes, stream);

        hooks.on_free(hooks.context, &block);
    }
}
