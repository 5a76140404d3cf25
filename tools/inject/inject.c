/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librmm-inject: loaded into a program by the CUDA driver (or the simulated one) because
 * CUDA_INJECTION64_PATH names it. Child processes inherit the variable, so the library does
 * nothing unless RMM_DIAG is set. If RMM_DIAG contains `driver`, it reports to a librmm-c what
 * the program takes from the driver directly (library.h). librmm-c calls
 * rmm_diag_injected_v1() (rmm/sys/diag.h) once, before its first block. Then this library creates
 * an engine over a side file of the process's segment, and passes the work of the GPU to it.
 *
 *   RMM_DIAG   the modes, separated by commas (diag/modes.h); "off": none yet, but blocks
 *              are followed, so that modes can be switched on; unset or empty: stay idle
 *   RMM_DIAG_QUARANTINE  in mode bounds: how many freed bytes each pool keeps from being
 *              reused; unset: none
 *   RMM_RUN    which rmm-run the process belongs to; unset: none
 *   RMM_TIMELINE  how many events to keep for a timeline (diag/timeline_format.h); unset: none
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

#include "core/numbers.h"
#include "diag/engine.h"
#include "inject/source.h"
#include "inject/streams.h"

#define KERNEL_COUNT 1024u
#define TIMELINE_EVENTS_MIN 16u

/* Live blocks that are followed: most first, fewer where the place has no room. */
static const uint32_t row_counts[] = {32768, 8192, 2048};

/* The copies of librmm-c in this process, in the order in which they had their first block. */
enum { COPIES_MAX = 8, RESOURCE_ID_BITS = 24 };

typedef struct copy {
    _Atomic(size_t) block_bytes; /* of those that it gives; 0: not known yet */
    atomic_bool is_followed;
} copy_t;

static copy_t copies[COPIES_MAX];
static _Atomic(uint32_t) copy_count; /* that were attached to, or found no place */
static atomic_bool forked;

RMM_API int InitializeInjection(void);
RMM_API void rmm_diag_injected_v1(rmm_diag_attach_fn attach);

/* --- hooks ------------------------------------------------------------------------- */

/* NULL until launches come: blocks without launches would all look unused. */
static _Atomic(rmm_diag_engine_t *) active_engine;

/* Each copy numbers its resources from 1; here those of two get different numbers. */
static rmm_diag_block_v1_t
known_part(const copy_t *copy, const rmm_diag_block_v1_t *block)
{
    rmm_diag_block_v1_t part = {0};
    size_t bytes = atomic_load_explicit(&copy->block_bytes, memory_order_relaxed);

    memcpy(&part, block, bytes < sizeof(part) ? bytes : sizeof(part));
    part.resource_id += (uint32_t)(copy - copies) << RESOURCE_ID_BITS;
    return part;
}

/* NULL: the copy that calls a hook is not followed, or not yet. */
static rmm_diag_engine_t *engine_for(const copy_t *copy)
{
    /* acquire: pairs with start(); the engine is complete */
    return atomic_load_explicit(&copy->is_followed, memory_order_relaxed)
               ? atomic_load_explicit(&active_engine, memory_order_acquire)
               : NULL;
}

static void on_alloc(void *context, const rmm_diag_block_v1_t *block)
{
    rmm_diag_engine_t *engine = engine_for(context);

    if (engine != NULL) {
        rmm_diag_block_v1_t known = known_part(context, block);

        if ((known.flags & RMM_DIAG_BLOCK_CAPTURED) == 0) {
            inject_streams_see(known.stream);
        }
        rmm__diag_engine_on_alloc(engine, &known);
    }
}

static void on_free(void *context, const rmm_diag_block_v1_t *block)
{
    rmm_diag_engine_t *engine = engine_for(context);

    if (engine != NULL) {
        rmm_diag_block_v1_t known = known_part(context, block);

        rmm__diag_engine_on_free(engine, &known);
    }
}

static void on_gone(void *context, uint64_t address, uint64_t bytes)
{
    rmm_diag_engine_t *engine = engine_for(context);

    if (engine != NULL) {
        rmm__diag_engine_on_gone(engine, address, bytes);
    }
}

static void on_pool(void *context, uint64_t address, uint64_t bytes)
{
    rmm_diag_engine_t *engine = engine_for(context);

    if (engine != NULL) {
        rmm__diag_engine_on_pool(engine, address, bytes);
    }
}

static void on_refused(void *context, const rmm_diag_block_v1_t *block)
{
    rmm_diag_engine_t *engine = engine_for(context);

    if (engine != NULL) {
        rmm_diag_block_v1_t known = known_part(context, block);

        rmm__diag_engine_on_refused(engine, &known);
    }
}

static uint64_t quarantine_setting; /* set before active_engine */

static uint64_t quarantine_bytes(void *context)
{
    /* acquire: as above */
    rmm_diag_engine_t *engine =
        atomic_load_explicit(&active_engine, memory_order_acquire);

    (void)context;
    return engine != NULL && rmm__diag_engine_has_mode(engine, RMM_DIAG_MODE_BOUNDS)
               ? quarantine_setting
               : 0;
}

static void on_simulated_event(void *context, const rmm_diag_event_v1_t *event)
{
    (void)context;
    if (!atomic_load_explicit(&forked, memory_order_relaxed)) {
        inject_streams_report(event);
    }
}

static int (*facts_simulated)(
    rmm_stream_t stream, uint32_t *flags_out, uint64_t *id_out);

static bool ask_simulated(rmm_stream_t stream, uint32_t *flags_out, uint64_t *id_out)
{
    return facts_simulated(stream, flags_out, id_out) == 0;
}

/* Collects the findings of the GPU after the last call of the program. */
__attribute__((destructor)) static void settle_at_exit(void)
{
    /* acquire: as above */
    rmm_diag_engine_t *engine =
        atomic_load_explicit(&active_engine, memory_order_acquire);

    if (engine != NULL) {
        rmm__diag_engine_settle(engine);
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

/* --- guards on the simulated GPU --------------------------------------------------- */

static int (*queue_simulated)(
    int device, rmm_stream_t stream, rmm_diag_work_fn fn, const void *parameter,
    size_t bytes);

static void run_simulated(const void *const *parameter)
{
    rmm__guards_run(parameter[0]);
}

static rmm_guard_answer_t queue_guards(
    int32_t device, rmm_stream_t stream, const rmm_guard_job_t *job, int *error_out)
{
    (void)error_out; /* whatever it is, the next may be possible */
    return queue_simulated(device, stream, run_simulated, job, sizeof(*job)) == 0
               ? RMM_GUARD_QUEUED
               : RMM_GUARD_REFUSED;
}

/* NULL: nothing can be queued there. */
static rmm_guard_queue_fn find_queue(const rmm_diag_services_v1_t *services)
{
    if (strcmp(services->driver_name, "cuda") == 0) {
        return inject_cupti_guards();
    }
    queue_simulated = services->queue;
    return queue_simulated != NULL ? queue_guards : NULL;
}

/* --- the engine -------------------------------------------------------------------- */

/* Fewer events than were requested where there is no room for more. */
static void
make_timeline(const rmm_diag_services_v1_t *services, rmm_diag_engine_desc_t *desc)
{
    const char *setting = getenv("RMM_TIMELINE");
    uint64_t count = 0;

    if (setting == NULL ||
        rmm__number_parse(setting, strlen(setting), &count) != RMM_NUMBER_OK) {
        return;
    }
    count = count < RMM_TIMELINE_EVENTS_MAX ? count : RMM_TIMELINE_EVENTS_MAX;
    for (; count >= TIMELINE_EVENTS_MIN && desc->timeline == NULL; count /= 4) {
        desc->timeline_events = (uint32_t)count;
        if (services->side_file(
                RMM_TIMELINE_SUFFIX, rmm__timeline_file_bytes((uint32_t)count),
                &desc->timeline) != RMM_OK) {
            desc->timeline = NULL;
        }
    }
}

/* NULL: no launcher says one. */
static const char *find_rank(void)
{
    static const char *const names[] = {
        "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    const char *rank = NULL;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && rank == NULL; i++) {
        rank = getenv(names[i]);
    }
    return rank;
}

/* 0 for text that is no number; rmm-run refuses it. */
static uint64_t read_quarantine(void)
{
    const char *setting = getenv("RMM_DIAG_QUARANTINE");
    uint64_t bytes = 0;

    if (setting == NULL ||
        rmm__number_parse_bytes(setting, strlen(setting), &bytes) != RMM_NUMBER_OK) {
        return 0;
    }
    return bytes;
}

/* For guards. And for the search for freed blocks: without room between blocks a pointer to a
 * freed one may be the end of the block before it, which is no error. */
static size_t room_behind_blocks(uint32_t modes, uint64_t quarantine)
{
    return (modes & RMM_DIAG_MODE_GUARDS) != 0 || quarantine != 0 ? RMM_GUARD_BYTES : 0;
}

/* On the simulated GPU only the library takes memory. */
static rmm_driver_memory_t driver_memory(bool is_real)
{
    if (!is_real) {
        return RMM_DRIVER_MEMORY_APART;
    }
    return inject_cupti_follows_driver() ? RMM_DRIVER_MEMORY_SEEN
                                         : RMM_DRIVER_MEMORY_UNSEEN;
}

static rmm_diag_engine_t *
make_engine(const rmm_diag_services_v1_t *services, uint32_t modes)
{
    bool is_real = strcmp(services->driver_name, "cuda") == 0;
    rmm_diag_engine_desc_t desc = {
        .kernel_count = KERNEL_COUNT,
        .demangle = find_demangler(),
        .modes = modes,
        .run = getenv("RMM_RUN"),
        .rank = find_rank(),
        .driver_memory = driver_memory(is_real),
        .queue = find_queue(services),
        .source = is_real ? inject_cupti_set_modes : NULL};

    for (size_t i = 0; i < sizeof(row_counts) / sizeof(row_counts[0]); i++) {
        size_t bytes = rmm__diag_file_bytes(row_counts[i], KERNEL_COUNT);

        desc.row_count = row_counts[i];
        if (services->side_file(RMM_DIAG_SUFFIX, bytes, &desc.memory) == RMM_OK) {
            make_timeline(services, &desc);
            return rmm__diag_engine_create(&desc);
        }
    }
    return NULL;
}

static bool start_source(
    rmm_diag_engine_t *engine, const rmm_diag_services_v1_t *services, uint32_t modes,
    char text[INJECT_TEXT_BYTES])
{
    if (strcmp(services->driver_name, "cuda") == 0) {
        return inject_cupti_start(engine, modes, text);
    }
    if (services->observe == NULL) {
        snprintf(
            text, INJECT_TEXT_BYTES, "error:the driver \"%s\" reports no events",
            services->driver_name);
        return false;
    }
    facts_simulated = services->stream_facts;
    inject_streams_open(engine, facts_simulated != NULL ? ask_simulated : NULL);
    services->observe(on_simulated_event, engine);
    snprintf(text, INJECT_TEXT_BYTES, "active");
    return true;
}

static uint32_t available_modes(const rmm_diag_services_v1_t *services, uint32_t modes)
{
    if (!inject_cupti_follows_driver()) {
        modes &= ~RMM_DIAG_MODE_DRIVER;
    }
    return find_queue(services) != NULL ? modes : modes & ~RMM_DIAG_MODE_GUARDS;
}

/* `unknown` is a word of RMM_DIAG that names no mode; NULL: all do. */
static void
start(const rmm_diag_services_v1_t *services, uint32_t modes, const char *unknown)
{
    char text[INJECT_TEXT_BYTES] = "";
    uint32_t had = available_modes(services, modes);
    rmm_diag_engine_t *engine = make_engine(services, had);
    bool active = false;

    if (engine == NULL) {
        return;
    }
    if (unknown != NULL) {
        snprintf(text, sizeof(text), "error:RMM_DIAG: no mode \"%s\"", unknown);
    } else {
        active = start_source(engine, services, had, text);
    }
    if (active) {
        /* release: pairs with the hooks */
        atomic_store_explicit(&active_engine, engine, memory_order_release);
    }
    rmm__diag_engine_publish(engine, text);
}

/* A real driver is being opened. The simulated GPU, which librmm-c brings, takes nothing from
 * one. */
static void follow_driver(void)
{
    inject_library_t library;

    if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) != NULL &&
        inject_library_open(&library) &&
        pthread_atfork(NULL, NULL, stop_in_child) == 0) {
        inject_cupti_follow_driver(&library);
    }
    (void)dlerror();
}

/* Called by the driver; 1 is success. */
int InitializeInjection(void)
{
    uint32_t modes = 0;
    char unknown[RMM_DIAG_MODE_WORD_BYTES] = "";

    if (rmm__diag_modes_parse(secure_getenv("RMM_DIAG"), &modes, unknown) &&
        (modes & RMM_DIAG_MODE_DRIVER) != 0) {
        follow_driver();
    }
    return 1;
}

/*
 * A process may have several librmm-c, for example one of them linked statically. The first has the
 * side file; the blocks of all are followed on a real GPU, whose events are the process's. (Each
 * copy has a simulated GPU of its own, of which the first one's is observed.) If the first is the
 * one that this library has loaded, to count what the program takes from the driver, then the
 * program's own copy was not found, and its pools were taken for the program's memory: that ends.
 */
static void
join_other(rmm_diag_attach_fn attach, const rmm_diag_hooks_v1_t *hooks, copy_t *copy)
{
    rmm_diag_services_v1_t services = {.struct_size = sizeof(services)};
    bool left_driver = inject_cupti_follows_driver();

    if (left_driver) {
        inject_cupti_leave_driver();
    }
    if (attach(hooks, &services) == RMM_OK) { /* refused: its blocks are not followed */
        atomic_store_explicit(
            &copy->block_bytes, services.block_bytes, memory_order_relaxed);
        atomic_store_explicit(
            &copy->is_followed,
            left_driver || strcmp(services.driver_name, "cuda") == 0,
            memory_order_relaxed);
    }
}

void rmm_diag_injected_v1(rmm_diag_attach_fn attach)
{
    uint32_t modes = 0;
    char unknown[RMM_DIAG_MODE_WORD_BYTES] = "";
    const char *setting = secure_getenv("RMM_DIAG");
    bool is_asked = setting != NULL && setting[0] != '\0';
    bool is_known = rmm__diag_modes_parse(setting, &modes, unknown);
    rmm_diag_hooks_v1_t hooks = {
        .struct_size = sizeof(hooks),
        .on_alloc = on_alloc,
        .on_free = on_free,
        .on_gone = on_gone,
        .quarantine_bytes = quarantine_bytes,
        .on_pool = on_pool,
        .on_refused = on_refused};
    rmm_diag_services_v1_t services = {.struct_size = sizeof(services)};
    uint64_t quarantine = 0;
    uint32_t index = 0;

    if (!is_asked) {
        return;
    }
    quarantine = read_quarantine();
    hooks.guard_bytes = room_behind_blocks(modes, quarantine);
    /* relaxed: nothing is handed over by it */
    index = atomic_fetch_add_explicit(&copy_count, 1, memory_order_relaxed);
    if (index >= COPIES_MAX) {
        return;
    }
    hooks.context = &copies[index];
    if (index > 0) {
        join_other(attach, &hooks, &copies[index]);
        return;
    }
    atomic_store_explicit(&copies[0].is_followed, true, memory_order_relaxed);
    if (attach(&hooks, &services) != RMM_OK) {
        return;
    }
    atomic_store_explicit(
        &copies[0].block_bytes, services.block_bytes, memory_order_relaxed);
    quarantine_setting = quarantine;
    if (pthread_atfork(NULL, NULL, stop_in_child) == 0) {
        start(&services, modes, is_known ? NULL : unknown);
    }
}
