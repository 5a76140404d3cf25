/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the simulated GPU's calls to a diagnosis: an event for each call that CUPTI would
 * report, at the call and not when the work runs; before it, too, where a range of memory is
 * passed; and the start of the diagnosis library
 * as the CUDA driver starts one.
 *
 * Locking: the observer is called without rmm__sim_lock, so it may call the driver.
 */
#include "driver/sim/internal.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/output.h"
#include "core/uncancelled.h"

_Atomic(rmm_diag_event_fn) rmm__sim_observer;
static _Atomic(void *) observer_context;

void rmm__sim_observe(rmm_diag_event_fn fn, void *context)
{
    atomic_store_explicit(&observer_context, context, memory_order_relaxed);
    /* release: pairs with rmm__sim_observe_slow(), for the context */
    atomic_store_explicit(&rmm__sim_observer, fn, memory_order_release);
}

static const void *address_of(rmm_sim_kernel_fn kernel)
{
    const void *address;

    /* ISO C has no conversion; POSIX (dlsym) needs the sizes to agree */
    static_assert(sizeof(address) == sizeof(kernel), "code addresses fit a pointer");
    memcpy(&address, &kernel, sizeof(address));
    return address;
}

void rmm__sim_observe_slow(const sim_observation_t *observation)
{
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = observation->kind,
        .device = observation->device,
        .stream = observation->stream,
        .function = address_of(observation->kernel),
        .name = observation->name,
        .words = observation->words,
        .word_count = observation->word_count,
        .stale_words = observation->stale_words,
        .bytes = observation->bytes,
        .capturing = observation->capturing ? 1 : 0,
        .before = observation->before ? 1 : 0,
        .graph = observation->graph};
    /* acquire: pairs with rmm__sim_observe() */
    rmm_diag_event_fn fn =
        atomic_load_explicit(&rmm__sim_observer, memory_order_acquire);

    if (fn != NULL) {
        fn(atomic_load_explicit(&observer_context, memory_order_relaxed), &event);
    }
}

void rmm__sim_tell_before(const sim_observation_t *observation)
{
    sim_observation_t before = *observation;

    before.device = rmm__sim_thread.device;
    before.before = true;
    rmm__sim_tell(&before);
}

void rmm__sim_tell_graph(rmm_diag_event_kind_t kind, uint64_t graph, uint64_t of)
{
    const uint64_t words[] = {graph, of};

    rmm__sim_tell(&(sim_observation_t){
        .kind = kind,
        .device = rmm__sim_thread.device,
        .words = words,
        .word_count = 2});
}

typedef int (*injection_fn)(void);

/* The real driver does so when it is initialised. The library may call back into librmm-c. */
void rmm__sim_inject(void)
{
    RMM_UNCANCELLED;
    static atomic_flag done = ATOMIC_FLAG_INIT;
    const char *path = secure_getenv("CUDA_INJECTION64_PATH");
    injection_fn initialize;
    void *library, *symbol;

    if (path == NULL || *path == '\0' ||
        atomic_flag_test_and_set_explicit(&done, memory_order_relaxed)) {
        return;
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        rmm__output_print(
            "rmm-sim: no diagnosis: CUDA_INJECTION64_PATH cannot be loaded: %s\n",
            dlerror());
        return;
    }
    symbol = dlsym(library, "InitializeInjection");
    if (symbol == NULL) {
        rmm__output_print(
            "rmm-sim: no diagnosis: %s has no InitializeInjection()\n", path);
        return;
    }
    memcpy(&initialize, &symbol, sizeof(initialize));
    (void)initialize(); /* as the CUDA driver, whatever it returns */
}
