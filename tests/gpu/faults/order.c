/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses and frees on one stream that nothing orders after what another stream does. What the twin
 * adds is the missing order.
 */
#include <pthread.h>

#include "gpu/faults/faults.h"

enum { BYTES = 4096, HALF = BYTES / 2 };

static void *take(scene_t *scene, rmm_stream_t stream)
{
    void *block = scene_take(scene, BYTES, stream);

    scene->culprit = block;
    return block;
}

static void drop(const scene_t *scene, void *block, rmm_stream_t stream)
{
    scene_drop(scene, block, BYTES, stream);
}

/* Once everything has run. */
static void drop_at_last(const scene_t *scene, void *block, rmm_stream_t stream)
{
    gpu_synchronize();
    drop(scene, block, stream);
}

static void use(gpu_kernel_t kernel, const void *block, rmm_stream_t stream)
{
    gpu_launch(kernel, block, NULL, stream);
}

static void order_streams(rmm_stream_t first, rmm_stream_t later)
{
    gpu_wait(GPU_WAIT_EVENT, first, later);
}

/* --- a use beside the allocation ----------------------------------------------------- */

/* The faulty one waits, but for the stream that it goes on with. */
static void use_after_wait(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);
    bool has_stream = fault->wait != GPU_WAIT_DEVICE && fault->wait != GPU_WAIT_FREE;

    use(GPU_KERNEL_fill, block, scene->a);
    if (!is_faulty || has_stream) {
        gpu_wait(fault->wait, is_faulty ? scene->b : scene->a, scene->b);
    }
    use(GPU_KERNEL_reduce, block, scene->b);
    drop_at_last(scene, block, scene->a);
}

static void use_after_early_event(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    gpu_event_t event = gpu_event_create();
    void *block = NULL;

    (void)fault;
    gpu_event_record(event, scene->a);
    block = take(scene, scene->a);
    if (!is_faulty) {
        gpu_event_record(event, scene->a);
    }
    gpu_event_wait(scene->b, event);
    use(GPU_KERNEL_reduce, block, scene->b);
    drop_at_last(scene, block, scene->a);
    gpu_event_destroy(event);
}

static rmm_stream_t make_normal_stream(void)
{
    rmm_stream_t stream = NULL;

    return rmm_stream_create(0, &stream) == RMM_OK ? stream : NULL;
}

/* Only a normal stream waits for the default stream. */
static void use_after_default(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    rmm_stream_t normal = make_normal_stream();
    void *block = take(scene, RMM_STREAM_LEGACY);

    (void)fault;
    use(GPU_KERNEL_reduce, block, is_faulty ? scene->b : normal);
    drop_at_last(scene, block, RMM_STREAM_LEGACY);
}

/* A copy that the host waits for runs on the default stream, behind normal streams. */
static void use_after_copy(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *other = take(scene, RMM_STREAM_LEGACY);
    rmm_stream_t stream = is_faulty ? scene->a : make_normal_stream();
    void *block = take(scene, stream);

    (void)fault;
    gpu_call(GPU_COPY_SYNC_FROM, other, scene->host, 64, RMM_STREAM_LEGACY);
    use(GPU_KERNEL_reduce, block, scene->b);
    drop_at_last(scene, other, RMM_STREAM_LEGACY);
    drop(scene, block, stream);
}

static void use_on_thread_stream(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);

    (void)fault;
    if (!is_faulty) {
        order_streams(scene->a, RMM_STREAM_PER_THREAD);
    }
    use(GPU_KERNEL_reduce, block, RMM_STREAM_PER_THREAD);
    drop_at_last(scene, block, scene->a);
}

static void use_as_second(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *mine = take(scene, scene->b), *block = take(scene, scene->a);

    (void)fault;
    if (!is_faulty) {
        order_streams(scene->a, scene->b);
    }
    gpu_launch(GPU_KERNEL_sum, mine, block + BYTES / 2, scene->b);
    drop_at_last(scene, block, scene->a);
    drop(scene, mine, scene->b);
}

/* Streams of a part of the processors are ordered by nothing else than others. */
static void use_on_green_stream(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    rmm_stream_t green = gpu_green_stream_create();
    void *block = take(scene, scene->a);

    (void)fault;
    if (!is_faulty) {
        order_streams(scene->a, green);
    }
    use(GPU_KERNEL_reduce, block, green);
    drop_at_last(scene, block, scene->a);
}

/* By what the diagnosis does not follow, and so does not judge, until the host has waited; then
 * by nothing. */
static void use_after_unseen(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = NULL;

    for (int i = 0; i < 20; i++) {
        block = take(scene, scene->a);
        use(GPU_KERNEL_fill, block, scene->a);
        gpu_wait(fault->wait, scene->a, scene->b);
        use(GPU_KERNEL_scale, block, scene->b);
        gpu_call(GPU_SET, block, NULL, BYTES, scene->b);
        drop(scene, block, scene->b);
    }
    gpu_synchronize();
    block = take(scene, scene->a);
    if (!is_faulty) {
        order_streams(scene->a, scene->b);
    }
    use(GPU_KERNEL_reduce, block, scene->b);
    drop_at_last(scene, block, scene->a);
}

static void use_in_struct(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *mine = take(scene, scene->b), *block = take(scene, scene->a);
    gpu_pair_t pair = {.count = 32, .first = mine, .second = block + 64};

    (void)fault;
    if (!is_faulty) {
        order_streams(scene->a, scene->b);
    }
    gpu_launch_pair(&pair, scene->b);
    drop_at_last(scene, block, scene->a);
    drop(scene, mine, scene->b);
}

enum { REUSE_TRIES = 64 };

/* The pool orders a block that changes streams; who keeps the old pointer is not ordered. */
static void use_reused(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *old = take(scene, scene->a), *blocks[REUSE_TRIES] = {NULL};
    int last = -1;

    (void)fault;
    use(GPU_KERNEL_fill, old, scene->a);
    drop(scene, old, scene->a);
    do {
        blocks[++last] = take(scene, scene->b); /* until it is the same, if ever */
        gpu_call(GPU_SET, blocks[last], NULL, BYTES, scene->b);
    } while (last + 1 < REUSE_TRIES && blocks[last] != old);
    if (is_faulty) {
        use(GPU_KERNEL_reduce, blocks[last], scene->a);
    }
    gpu_synchronize();
    for (int i = 0; i <= last; i++) {
        drop(scene, blocks[i], scene->b);
    }
}

static void use_after_graph(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a), *later = NULL;

    (void)fault;
    use(GPU_KERNEL_fill, block, scene->a);
    gpu_synchronize();
    gpu_capture_begin(scene->a);
    order_streams(scene->a, scene->b);
    use(GPU_KERNEL_fill, block, scene->a);
    use(GPU_KERNEL_fill, block, scene->b);
    order_streams(scene->b, scene->a);
    gpu_capture_end(scene->a, 3, scene->b); /* behind it all is judged again */
    later = take(scene, scene->a);
    if (!is_faulty) {
        order_streams(scene->a, scene->b);
    }
    use(GPU_KERNEL_reduce, later, scene->b);
    drop_at_last(scene, later, scene->a);
    drop(scene, block, scene->a);
}

typedef struct handover {
    rmm_stream_t stream;
    void *block;
} handover_t;

static void *use_in_thread(void *argument)
{
    handover_t *handover = argument;

    use(GPU_KERNEL_reduce, handover->block, handover->stream);
    return NULL;
}

/* A thread is started behind the allocation: that orders the host, and not the GPU. */
static void use_in_other_thread(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    handover_t handover = {scene->b, take(scene, scene->a)};
    pthread_t thread;

    (void)fault;
    if (!is_faulty) {
        order_streams(scene->a, scene->b);
    }
    if (pthread_create(&thread, NULL, use_in_thread, &handover) == 0) {
        pthread_join(thread, NULL);
    }
    drop_at_last(scene, handover.block, scene->a);
}

static void *work_in_thread(void *argument)
{
    const scene_t *scene = argument;
    void *block = scene_take(scene, BYTES, RMM_STREAM_PER_THREAD);

    use(GPU_KERNEL_fill, block, RMM_STREAM_PER_THREAD);
    drop(scene, block, RMM_STREAM_PER_THREAD);
    return NULL;
}

/* The default streams of threads that have ended must not stand in the way of new streams. */
static void use_after_many_threads(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    rmm_stream_t first = NULL, later = NULL;
    pthread_t thread;
    void *block = NULL;

    (void)fault;
    for (int i = 0; i < 100; i++) {
        if (pthread_create(&thread, NULL, work_in_thread, scene) == 0) {
            pthread_join(thread, NULL);
        }
    }
    if (rmm_stream_create(RMM_STREAM_NON_BLOCKING, &first) != RMM_OK ||
        rmm_stream_create(RMM_STREAM_NON_BLOCKING, &later) != RMM_OK) {
        return;
    }
    block = take(scene, first);
    if (!is_faulty) {
        order_streams(first, later);
    }
    use(GPU_KERNEL_reduce, block, later);
    drop_at_last(scene, block, first);
    (void)rmm_stream_destroy(first);
    (void)rmm_stream_destroy(later);
}

/* --- two uses ------------------------------------------------------------------------ */

static void fill_beside_kernel(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);

    (void)fault;
    order_streams(scene->a, scene->b);
    use(GPU_KERNEL_scale, block, scene->a);
    if (!is_faulty) {
        order_streams(scene->a, scene->b);
    }
    gpu_call(GPU_SET, block, NULL, BYTES, scene->b);
    drop_at_last(scene, block, scene->a);
}

static void kernel_beside_fill(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);

    (void)fault;
    order_streams(scene->a, scene->b);
    gpu_call(GPU_SET, block, NULL, BYTES, scene->a);
    if (!is_faulty) {
        order_streams(scene->a, scene->b);
    }
    use(GPU_KERNEL_scale, block, scene->b);
    drop_at_last(scene, block, scene->a);
}

/* cudaMemset() returns before the memory of the GPU is filled. */
static void
kernel_beside_sync_fill(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);

    (void)fault;
    gpu_synchronize();
    gpu_call(GPU_SET_SYNC, block, NULL, BYTES, RMM_STREAM_LEGACY);
    if (!is_faulty) {
        gpu_synchronize();
    }
    use(GPU_KERNEL_scale, block, scene->b);
    gpu_synchronize();
    drop(scene, block, scene->a);
}

static void copies_of_parts(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = take(scene, scene->a);

    (void)fault;
    order_streams(scene->a, scene->b);
    gpu_call(GPU_COPY_TO, block, scene->host, HALF, scene->a);
    gpu_call(
        GPU_COPY_FROM, block + (is_faulty ? HALF - 1 : HALF),
        (char *)scene->host + HALF, HALF, scene->b);
    drop_at_last(scene, block, scene->a);
}

/* --- frees --------------------------------------------------------------------------- */

static void free_under_kernel(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);

    (void)fault;
    order_streams(scene->a, scene->b);
    use(GPU_KERNEL_reduce, block, scene->b);
    use(GPU_KERNEL_sum, block, scene->b);
    if (!is_faulty) {
        order_streams(scene->b, scene->a);
    }
    drop(scene, block, scene->a);
}

/* The host knows that the other stream has finished; the faulty one does not wait. */
static void free_after_wait(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);

    order_streams(scene->a, scene->b);
    use(GPU_KERNEL_reduce, block, scene->b);
    if (!is_faulty) {
        gpu_wait(fault->wait, scene->b, scene->a);
    }
    drop(scene, block, scene->a);
}

static void free_under_copy(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);

    (void)fault;
    order_streams(scene->a, scene->b);
    gpu_call(GPU_COPY_FROM, block, scene->host, BYTES, scene->b);
    drop(scene, block, is_faulty ? scene->a : scene->b);
    gpu_synchronize();
}

static void free_on_default(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);

    (void)fault;
    use(GPU_KERNEL_reduce, block, scene->a);
    if (!is_faulty) {
        gpu_synchronize();
    }
    drop(scene, block, RMM_STREAM_LEGACY);
}

/* --- right in both ------------------------------------------------------------------- */

static void two_readers(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *in = take(scene, scene->a);
    void *first = take(scene, scene->a), *second = take(scene, scene->b);

    (void)fault, (void)is_faulty;
    order_streams(scene->a, scene->b);
    gpu_launch(GPU_KERNEL_scale, first, in, scene->a);
    gpu_launch(GPU_KERNEL_scale, second, in, scene->b);
    order_streams(scene->b, scene->a);
    drop(scene, in, scene->a);
    drop(scene, first, scene->a);
    drop(scene, second, scene->b);
}

static void come_and_go(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    (void)fault, (void)is_faulty;
    for (int i = 0; i < 200; i++) {
        rmm_stream_t stream = NULL;
        void *block = take(scene, scene->a);

        if (rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) != RMM_OK) {
            return;
        }
        order_streams(scene->a, stream);
        use(GPU_KERNEL_reduce, block, stream);
        drop(scene, block, stream);
        (void)rmm_stream_destroy(stream);
    }
}

/* --- the legacy default stream ------------------------------------------------------- */

/* Which a stream of the scene does not wait for. */
static void after_default(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, RMM_STREAM_LEGACY);

    (void)fault;
    use(GPU_KERNEL_fill, block, RMM_STREAM_LEGACY);
    if (!is_faulty) {
        order_streams(RMM_STREAM_LEGACY, scene->a);
    }
    use(GPU_KERNEL_reduce, block, scene->a);
    drop_at_last(scene, block, RMM_STREAM_LEGACY);
}

static void default_after(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);

    (void)fault;
    use(GPU_KERNEL_fill, block, scene->a);
    if (!is_faulty) {
        order_streams(scene->a, RMM_STREAM_LEGACY);
    }
    use(GPU_KERNEL_reduce, block, RMM_STREAM_LEGACY);
    drop_at_last(scene, block, scene->a);
}

/* --- one error ----------------------------------------------------------------------- */

/* The wait that is missing would order all that follows, too. */
static void use_and_free(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);

    (void)fault;
    use(GPU_KERNEL_fill, block, scene->a);
    if (!is_faulty) {
        order_streams(scene->a, scene->b);
    }
    use(GPU_KERNEL_reduce, block, scene->b);
    use(GPU_KERNEL_sum, block, scene->b);
    gpu_call(GPU_SET, block, NULL, BYTES, scene->b);
    drop(scene, block, scene->b);
}

/* --- the end of an array ------------------------------------------------------------- */

/* Where a block of another stream begins. */
static void begin_and_end(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    enum { COUNT = 4 };
    char *blocks[COUNT];

    (void)fault, (void)is_faulty;
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = scene_take(scene, BYTES, i % 2 == 0 ? scene->a : scene->b);
        use(GPU_KERNEL_fill, blocks[i], i % 2 == 0 ? scene->a : scene->b);
    }
    for (int i = 0; i < COUNT; i += 2) {
        gpu_launch(GPU_KERNEL_sum, blocks[i], blocks[i] + BYTES, scene->a);
    }
    for (int i = 0; i < COUNT; i++) {
        drop(scene, blocks[i], i % 2 == 0 ? scene->a : scene->b);
    }
}

/* --- the table ----------------------------------------------------------------------- */

#define POOL "pool:64MiB"
#define ORDER .modes = "usage,bounds,order", .bytes = BYTES
/* By a kernel, of a block whose allocation it does not wait for. */
#define EARLY_USE(by)                                                                  \
    ORDER, .kind = "use_unordered", .access = "use", .kernel = by, .other = ""
#define EARLY_FREE ORDER, .kind = "free_unordered", .access = "free"
#define WAIT(kind)                                                                     \
    .resource = POOL, .plant = use_after_wait, .wait = GPU_WAIT_##kind,                \
    EARLY_USE("reduce")
#define RESOURCE(spec) .resource = spec, .plant = use_after_wait, .wait = GPU_WAIT_EVENT

#define UNSEEN(kind)                                                                   \
    .resource = POOL, .plant = use_after_unseen, .wait = GPU_WAIT_##kind,              \
    EARLY_USE("reduce")
#define FREE_AFTER(kind)                                                               \
    .resource = POOL, .plant = free_after_wait, .wait = GPU_WAIT_##kind, EARLY_FREE,   \
    .other = "reduce"

static const fault_t faults[] = {
    {.name = "use_after_default",
     .resource = POOL,
     .plant = after_default,
     EARLY_USE("reduce")},
    {.name = "use_after_default_of_old_stream",
     .resource = POOL,
     .plant = after_default,
     .has_old_streams = true,
     EARLY_USE("reduce")},
    {.name = "default_after_old_stream",
     .resource = POOL,
     .plant = default_after,
     .has_old_streams = true,
     EARLY_USE("reduce")},
    {.name = "async_use_after_default_of_old_stream",
     .resource = "async:64MiB",
     .plant = after_default,
     .has_old_streams = true,
     EARLY_USE("reduce")},
    {.name = "use_and_free_of_old_stream",
     .resource = POOL,
     .plant = use_and_free,
     .has_old_streams = true,
     EARLY_USE("reduce")},
    {.name = "end_beside_other_stream",
     .resource = POOL,
     .plant = begin_and_end,
     ORDER},
    {.name = "no_event", WAIT(EVENT)},
    {.name = "no_stream_wait", WAIT(STREAM)},
    {.name = "no_device_wait", WAIT(DEVICE)},
    {.name = "no_event_wait", WAIT(EVENT_SYNC)},
    {.name = "no_event_query", WAIT(EVENT_QUERY)},
    {.name = "no_stream_query", WAIT(STREAM_QUERY)},
    {.name = "no_host_function", WAIT(HOST_FUNCTION)},
    {.name = "no_free", WAIT(FREE)},
    {.name = "values_then_no_event", UNSEEN(VALUE)},
    {.name = "launch_events_then_no_event", UNSEEN(LAUNCH_EVENT)},
    {.name = "green_no_event",
     .resource = POOL,
     .plant = use_on_green_stream,
     .needs_cuda_13 = true,
     EARLY_USE("reduce")},
    {.name = "virtual_no_event", RESOURCE("pool_virtual:64MiB"), EARLY_USE("reduce")},
    {.name = "arena_no_event", RESOURCE("arena:64MiB"), EARLY_USE("reduce")},
    {.name = "fixed_no_event", RESOURCE("fixed_size:4KiB"), EARLY_USE("reduce")},
    {.name = "binning_no_event", RESOURCE("binning:64MiB"), EARLY_USE("reduce")},
    {.name = "async_no_event", RESOURCE("async:64MiB"), EARLY_USE("reduce")},
    {.name = "managed_pool_no_event",
     RESOURCE("pool_managed:64MiB"),
     EARLY_USE("reduce")},
    {.name = "cuda_needs_no_event", RESOURCE("cuda"), ORDER},
    {.name = "managed_needs_no_event", RESOURCE("managed"), ORDER},
    {.name = "early_event",
     .resource = POOL,
     .plant = use_after_early_event,
     EARLY_USE("reduce")},
    {.name = "default_stream",
     .resource = POOL,
     .plant = use_after_default,
     EARLY_USE("reduce")},
    {.name = "synchronous_copy",
     .resource = POOL,
     .plant = use_after_copy,
     .needs = GPU_COPY_SYNC_FROM,
     EARLY_USE("reduce")},
    {.name = "thread_stream",
     .resource = POOL,
     .plant = use_on_thread_stream,
     EARLY_USE("reduce")},
    {.name = "second_pointer",
     .resource = POOL,
     .plant = use_as_second,
     EARLY_USE("sum")},
    {.name = "struct_of_pointers",
     .resource = POOL,
     .plant = use_in_struct,
     EARLY_USE("mix")},
    {.name = "virtual_struct_of_pointers",
     .resource = "pool_virtual:64MiB",
     .plant = use_in_struct,
     EARLY_USE("mix")},
    {.name = "arena_struct_of_pointers",
     .resource = "arena:64MiB",
     .plant = use_in_struct,
     EARLY_USE("mix")},
    {.name = "block_changes_streams",
     .resource = POOL,
     .plant = use_reused,
     EARLY_USE("reduce")},
    {.name = "behind_a_graph",
     .resource = POOL,
     .plant = use_after_graph,
     EARLY_USE("reduce")},
    {.name = "thread_begins",
     .resource = POOL,
     .plant = use_in_other_thread,
     EARLY_USE("reduce")},
    {.name = "after_many_threads",
     .resource = POOL,
     .plant = use_after_many_threads,
     EARLY_USE("reduce")},
    {.name = "fill_beside_kernel",
     .resource = POOL,
     .plant = fill_beside_kernel,
     ORDER,
     .kind = "use_unordered",
     .access = "write",
     .call = GPU_SET,
     .other = "scale",
     .length = BYTES},
    {.name = "kernel_beside_fill",
     .resource = POOL,
     .plant = kernel_beside_fill,
     ORDER,
     .kind = "use_unordered",
     .access = "use",
     .kernel = "scale",
     .other_call = GPU_SET},
    {.name = "kernel_beside_sync_fill",
     .resource = POOL,
     .plant = kernel_beside_sync_fill,
     ORDER,
     .kind = "use_unordered",
     .access = "use",
     .kernel = "scale",
     .other_call = GPU_SET_SYNC,
     .needs = GPU_SET_SYNC},
    {.name = "copies_of_parts",
     .resource = POOL,
     .plant = copies_of_parts,
     ORDER,
     .kind = "use_unordered",
     .access = "read",
     .call = GPU_COPY_FROM,
     .other_call = GPU_COPY_TO,
     .offset = HALF - 1,
     .length = HALF},
    {.name = "free_under_kernel",
     .resource = POOL,
     .plant = free_under_kernel,
     EARLY_FREE,
     .other = "sum"},
    {.name = "arena_free_under_kernel",
     .resource = "arena:64MiB",
     .plant = free_under_kernel,
     EARLY_FREE,
     .other = "sum"},
    {.name = "fixed_free_under_kernel",
     .resource = "fixed_size:4KiB",
     .plant = free_under_kernel,
     EARLY_FREE,
     .other = "sum"},
    {.name = "virtual_free_under_kernel",
     .resource = "pool_virtual:64MiB",
     .plant = free_under_kernel,
     EARLY_FREE,
     .other = "sum"},
    {.name = "binning_free_under_kernel",
     .resource = "binning:64MiB",
     .plant = free_under_kernel,
     EARLY_FREE,
     .other = "sum"},
    {.name = "managed_pool_free_under_kernel",
     .resource = "pool_managed:64MiB",
     .plant = free_under_kernel,
     EARLY_FREE,
     .other = "sum"},
    {.name = "async_free_under_kernel",
     .resource = "async:64MiB",
     .plant = free_under_kernel,
     EARLY_FREE,
     .other = "sum"},
    {.name = "free_before_stream_ends", FREE_AFTER(STREAM)},
    {.name = "free_before_function", FREE_AFTER(HOST_FUNCTION)},
    {.name = "free_before_event_ends", FREE_AFTER(EVENT_QUERY)},
    {.name = "free_under_copy",
     .resource = POOL,
     .plant = free_under_copy,
     EARLY_FREE,
     .other_call = GPU_COPY_FROM},
    {.name = "free_on_default",
     .resource = POOL,
     .plant = free_on_default,
     EARLY_FREE,
     .other = "reduce"},
    {.name = "two_readers", .resource = POOL, .plant = two_readers, ORDER},
    {.name = "streams_come_and_go", .resource = POOL, .plant = come_and_go, ORDER},
};

const fault_table_t faults_order = {faults, sizeof(faults) / sizeof(faults[0])};
