/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librmm-inject: loaded into a program by the CUDA driver (or the simulated one) because
 * CUDA_INJECTION64_PATH names it. That may be every process of a tree, so it does nothing
 * at all until librmm-c calls rmm_diag_injected_v1() (rmm/sys/diag.h), which it does once,
 * before its first block; then, if RMM_DIAG asks for it, it makes an engine over a side
 * file of the process's segment, and sends it the GPU's launches.
 *
 *   RMM_DIAG   "usage"; unset, empty or "off": nothing
 *
 * A program must never fail because of it: whatever goes wrong ends in `source` of the
 * side file, and where there is no side file, in silence. It writes nothing to the
 * program's output and starts no thread.
 *
 * Fork: a child reports nothing; the side file is not inherited.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/engine.h"
#include "inject/source.h"

#define MODE_USAGE "usage"
#define KERNEL_COUNT 1024u

/* Live blocks that are followed: most first, fewer where the place has no room. */
static const uint32_t row_counts[] = {32768, 8192, 2048};

static atomic_bool taken; /* a librmm-c was attached to */
static atomic_bool forked;

/* Called by the driver; 1 is success. Nothing to do yet: see above. */
RMM_API int InitializeInjection(void);
RMM_API void rmm_diag_injected_v1(rmm_diag_attach_fn attach);

int InitializeInjection(void)
{
    return 1;
}

/* --- what was asked ---------------------------------------------------------------- */

typedef enum request { REQUEST_OFF, REQUEST_USAGE, REQUEST_UNKNOWN } request_t;

static request_t parse_request(const char *text)
{
    if (text == NULL || text[0] == '\0' || strcmp(text, "off") == 0) {
        return REQUEST_OFF;
    }
    return strcmp(text, MODE_USAGE) == 0 ? REQUEST_USAGE : REQUEST_UNKNOWN;
}

/* --- hooks ------------------------------------------------------------------------- */

/* NULL until launches come: blocks without launches would all look unused. */
static _Atomic(rmm_diag_engine_t *) active_engine;

static void on_alloc(void *context, const rmm_diag_block_v1_t *block)
{
    /* acquire: pairs with rmm_diag_injected_v1(); the engine is complete */
    rmm_diag_engine_t *engine =
        atomic_load_explicit(&active_engine, memory_order_acquire);

    (void)context;
    if (engine != NULL) {
        rmm__diag_engine_on_alloc(engine, block);
    }
}

static void on_free(void *context, const rmm_diag_block_v1_t *block)
{
    /* acquire: as above */
    rmm_diag_engine_t *engine =
        atomic_load_explicit(&active_engine, memory_order_acquire);

    (void)context;
    if (engine != NULL) {
        rmm__diag_engine_on_free(engine, block);
    }
}

static void on_simulated_event(void *context, const rmm_diag_event_v1_t *event)
{
    if (!atomic_load_explicit(&forked, memory_order_relaxed)) {
        rmm__diag_engine_on_event(context, event);
    }
}

static void stop_in_child(void)
{
    atomic_store_explicit(&forked, true, memory_order_relaxed);
    atomic_store_explicit(&active_engine, NULL, memory_order_relaxed);
    inject_cupti_stop();
}

/* --- starting ---------------------------------------------------------------------- */

/* The program's own C++ runtime, if it has one; never brought in for this. Looked up
 * here because a launch callback must not wait for the dynamic linker's lock. */
static rmm_demangle_fn find_demangler(void)
{
    void *runtime = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    rmm_demangle_fn function = NULL;

    if (symbol == NULL) {
        runtime = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
        symbol = runtime != NULL ? dlsym(runtime, "__cxa_demangle") : NULL;
    }
    if (symbol == NULL) {
        (void)dlerror();
    }
    memcpy(&function, &symbol, sizeof(function));
    return function;
}

static rmm_diag_engine_t *make_engine(const rmm_diag_services_v1_t *services)
{
    rmm_diag_engine_desc_t desc = {
        .kernel_count = KERNEL_COUNT, .demangle = find_demangler()};

    for (size_t i = 0; i < sizeof(row_counts) / sizeof(row_counts[0]); i++) {
        size_t bytes = rmm__diag_file_bytes(row_counts[i], KERNEL_COUNT);

        desc.row_count = row_counts[i];
        if (services->side_file(RMM_DIAG_SUFFIX, bytes, &desc.memory) == RMM_OK) {
            return rmm__diag_engine_create(&desc);
        }
    }
    return NULL;
}

static bool start_source(
    rmm_diag_engine_t *engine, const rmm_diag_services_v1_t *services,
    char text[INJECT_TEXT_BYTES])
{
    if (strcmp(services->driver_name, "sim") != 0) {
        return inject_cupti_start(engine, text);
    }
    if (services->observe == NULL) {
        snprintf(text, INJECT_TEXT_BYTES, "error:the simulated GPU gives no events");
        return false;
    }
    services->observe(on_simulated_event, engine);
    snprintf(text, INJECT_TEXT_BYTES, "active");
    return true;
}

static void
start(const rmm_diag_services_v1_t *services, request_t request, const char *asked)
{
    char text[INJECT_TEXT_BYTES] = "";
    rmm_diag_engine_t *engine = make_engine(services);
    bool active = false;

    if (engine == NULL) {
        return;
    }
    if (request == REQUEST_UNKNOWN) {
        snprintf(text, sizeof(text), "error:RMM_DIAG: no mode \"%.40s\"", asked);
    } else {
        active = start_source(engine, services, text);
    }
    if (active) {
        /* release: pairs with the hooks */
        atomic_store_explicit(&active_engine, engine, memory_order_release);
    }
    rmm__diag_engine_publish(engine, MODE_USAGE, text);
}

void rmm_diag_injected_v1(rmm_diag_attach_fn attach)
{
    const char *asked = getenv("RMM_DIAG");
    request_t request = parse_request(asked);
    rmm_diag_hooks_v1_t hooks = {
        .struct_size = sizeof(hooks), .on_alloc = on_alloc, .on_free = on_free};
    rmm_diag_services_v1_t services = {.struct_size = sizeof(services)};

    /* A process may have two librmm-c, one of them linked statically: the first wins.
     * relaxed: nothing is handed over by it. */
    if (request == REQUEST_OFF ||
        atomic_exchange_explicit(&taken, true, memory_order_relaxed) ||
        attach(&hooks, &services) != RMM_OK) {
        return;
    }
    if (pthread_atfork(NULL, NULL, stop_in_child) == 0) {
        start(&services, request, asked);
    }
}
