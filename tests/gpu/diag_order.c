/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order on a real GPU: each program once with one error and once right. The first must be one
 * finding, the second none. Run it under rmm-run:
 *
 *   rmm-run --diag order -- diag_order
 *
 * What runs unordered only touches memory of the pool. Output and exit status are those of
 * diag_usage.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <cuda_runtime.h>

#include <rmm/rmm.h>

#include "gpu/diag_kernels.h"
#include "gpu/diagnosed.h"

enum { BLOCK_BYTES = 1 << 16, HALF = BLOCK_BYTES / 2 };

typedef struct scene {
    rmm_resource_t *pool;
    cudaStream_t a, b;   /* neither waits for the default stream */
    cudaStream_t normal; /* it does */
    cudaEvent_t event;
    char *pinned;
} scene_t;

static void must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        printf("%s: %s\n", what, cudaGetErrorString(error));
        give_up(what);
    }
}

#define MUST(call) must(call, #call)

static void *take(const scene_t *s, cudaStream_t stream)
{
    void *block = NULL;

    if (rmm_resource_alloc(s->pool, BLOCK_BYTES, 0, (rmm_stream_t)stream, &block) !=
        RMM_OK) {
        give_up(rmm_last_error_message());
    }
    return block;
}

static void drop(const scene_t *s, void *block, cudaStream_t stream)
{
    rmm_resource_dealloc(s->pool, block, BLOCK_BYTES, 0, (rmm_stream_t)stream);
}

static void use(void *block, cudaStream_t stream)
{
    MUST((cudaError_t)diag_fill(block, 256, (rmm_stream_t)stream));
}

static void order_streams(const scene_t *s, cudaStream_t first, cudaStream_t later)
{
    MUST(cudaEventRecord(s->event, first));
    MUST(cudaStreamWaitEvent(later, s->event, 0));
}

/* Each uses a block on b that was allocated on a, after waiting for the right stream or for
 * another. */

static void *use_after(
    const scene_t *s, bool is_right,
    void (*wait)(const scene_t *s, cudaStream_t stream))
{
    void *block = take(s, s->a);

    use(block, s->a);
    wait(s, is_right ? s->a : s->b);
    use(block, s->b);
    return block;
}

static void wait_event(const scene_t *s, cudaStream_t stream)
{
    order_streams(s, stream, s->b);
}

static void wait_stream(const scene_t *s, cudaStream_t stream)
{
    (void)s;
    MUST(cudaStreamSynchronize(stream));
}

static void host_waits_event(const scene_t *s, cudaStream_t stream)
{
    MUST(cudaEventRecord(s->event, stream));
    MUST(cudaEventSynchronize(s->event));
}

static void poll_event(const scene_t *s, cudaStream_t stream)
{
    MUST(cudaEventRecord(s->event, stream));
    while (cudaEventQuery(s->event) == cudaErrorNotReady) {
        sched_yield();
    }
}

static void poll_stream(const scene_t *s, cudaStream_t stream)
{
    (void)s;
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {
        sched_yield();
    }
}

static void CUDART_CB raise_flag(void *flag)
{
    atomic_store((atomic_bool *)flag, true);
}

static void wait_host_function(const scene_t *s, cudaStream_t stream)
{
    static atomic_bool flag;

    (void)s;
    atomic_store(&flag, false);
    MUST(cudaLaunchHostFunc(stream, raise_flag, &flag));
    while (!atomic_load(&flag)) {
        sched_yield();
    }
}

static void wait_device(const scene_t *s, cudaStream_t stream)
{
    if (stream == s->a) {
        MUST(cudaDeviceSynchronize());
    }
}

static void wait_free(const scene_t *s, cudaStream_t stream)
{
    void *memory = NULL;

    if (stream == s->a) {
        MUST(cudaMalloc(&memory, 4096));
        MUST(cudaFree(memory));
    }
}

static void with_event(const scene_t *s, bool is_right)
{
    (void)use_after(s, is_right, wait_event);
}

static void with_stream(const scene_t *s, bool is_right)
{
    (void)use_after(s, is_right, wait_stream);
}

static void with_host_event(const scene_t *s, bool is_right)
{
    (void)use_after(s, is_right, host_waits_event);
}

static void with_event_query(const scene_t *s, bool is_right)
{
    (void)use_after(s, is_right, poll_event);
}

static void with_stream_query(const scene_t *s, bool is_right)
{
    (void)use_after(s, is_right, poll_stream);
}

static void with_host_function(const scene_t *s, bool is_right)
{
    (void)use_after(s, is_right, wait_host_function);
}

static void with_device(const scene_t *s, bool is_right)
{
    (void)use_after(s, is_right, wait_device);
}

static void with_free(const scene_t *s, bool is_right)
{
    (void)use_after(s, is_right, wait_free);
}

static void early_event(const scene_t *s, bool is_right)
{
    void *block = NULL;

    MUST(cudaEventRecord(s->event, s->a));
    block = take(s, s->a);
    if (is_right) {
        MUST(cudaEventRecord(s->event, s->a));
    }
    MUST(cudaStreamWaitEvent(s->b, s->event, 0));
    use(block, s->b);
}

static void default_stream(const scene_t *s, bool is_right)
{
    void *block = take(s, cudaStreamLegacy);

    use(block, is_right ? s->normal : s->a);
}

/* A copy that is not asynchronous runs on the default stream, which waits for `normal`. */
static void synchronous_copy(const scene_t *s, bool is_right)
{
    void *block = take(s, is_right ? s->normal : s->a);
    void *other = take(s, cudaStreamLegacy);

    MUST(cudaMemcpy(s->pinned, other, 64, cudaMemcpyDeviceToHost));
    use(block, s->b);
}

static void own_stream(const scene_t *s, bool is_right)
{
    void *block = take(s, s->a);

    if (is_right) {
        order_streams(s, s->a, cudaStreamPerThread);
    }
    MUST((cudaError_t)diag_own_stream(block));
}

static void free_under_kernel(const scene_t *s, bool is_right)
{
    void *block = take(s, s->a);

    order_streams(s, s->a, s->b);
    use(block, s->b);
    if (is_right) {
        order_streams(s, s->b, s->a);
    }
    drop(s, block, s->a);
}

static void free_under_copy(const scene_t *s, bool is_right)
{
    void *block = take(s, s->a);

    order_streams(s, s->a, s->b);
    MUST(cudaMemcpyAsync(s->pinned, block, BLOCK_BYTES, cudaMemcpyDeviceToHost, s->b));
    drop(s, block, is_right ? s->b : s->a);
}

static void fill_beside_kernel(const scene_t *s, bool is_right)
{
    void *block = take(s, s->a);

    order_streams(s, s->a, s->b);
    use(block, s->a);
    if (is_right) {
        order_streams(s, s->a, s->b);
    }
    MUST(cudaMemsetAsync(block, 0, BLOCK_BYTES, s->b));
}

static void copies_of_parts(const scene_t *s, bool is_right)
{
    char *block = take(s, s->a);

    order_streams(s, s->a, s->b);
    MUST(cudaMemcpyAsync(block, s->pinned, HALF, cudaMemcpyHostToDevice, s->a));
    MUST(cudaMemcpyAsync(
        s->pinned + HALF, block + (is_right ? HALF : HALF - 1), HALF,
        cudaMemcpyDeviceToHost, s->b));
}

/* The pool orders a block that changes streams; whoever keeps the old pointer is not ordered. */
static void reuse(const scene_t *s, bool is_right)
{
    void *old = take(s, s->a), *block = NULL;

    use(old, s->a);
    drop(s, old, s->a);
    for (int i = 0; i < 64 && block != old; i++) {
        block = take(s, s->b); /* until it is the same again, if ever */
    }
    use(block, s->b);
    if (!is_right) {
        use(block, s->a);
    }
}

static void capture(const scene_t *s, bool is_right)
{
    void *block = take(s, s->a);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;

    use(block, s->a);
    MUST(cudaStreamSynchronize(s->a));
    MUST(cudaStreamBeginCapture(s->a, cudaStreamCaptureModeRelaxed));
    order_streams(s, s->a, s->b);
    use(block, s->a);
    use(block, s->b);
    order_streams(s, s->b, s->a);
    MUST(cudaStreamEndCapture(s->a, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; i++) {
        MUST(cudaGraphLaunch(executable, s->b));
    }
    if (is_right) {
        MUST(cudaStreamSynchronize(s->b));
    } else {
        block = take(s, s->a); /* behind the graph all is judged again */
    }
    use(block, s->b);
    MUST(cudaDeviceSynchronize());
    MUST(cudaGraphExecDestroy(executable));
    MUST(cudaGraphDestroy(graph));
}

/* What is common and right: nothing may be found in either run. */
static void readers(const scene_t *s, bool is_right)
{
    float *in = take(s, s->a), *first = take(s, s->a), *second = take(s, s->b);

    (void)is_right;
    order_streams(s, s->a, s->b);
    MUST((cudaError_t)diag_scale(first, in, (rmm_stream_t)s->a));
    MUST((cudaError_t)diag_scale(second, in, (rmm_stream_t)s->b));
    order_streams(s, s->b, s->a);
    drop(s, in, s->a);
    drop(s, first, s->a);
    drop(s, second, s->b);
}

static void come_and_go(const scene_t *s, bool is_right)
{
    (void)is_right;
    for (int i = 0; i < 200; i++) {
        cudaStream_t stream = NULL;
        cudaEvent_t event = NULL;
        void *block = take(s, s->a);

        MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        MUST(cudaEventRecord(event, s->a));
        MUST(cudaStreamWaitEvent(stream, event, 0));
        use(block, stream);
        drop(s, block, stream);
        MUST(cudaEventDestroy(event));
        MUST(cudaStreamDestroy(stream));
    }
}

static const struct {
    const char *name;
    void (*run)(const scene_t *scene, bool is_right);
    uint64_t errors; /* that are found if it is not right */
} programs[] = {
    {"cudaStreamWaitEvent", with_event, 1},
    {"an event recorded too early", early_event, 1},
    {"cudaStreamSynchronize", with_stream, 1},
    {"cudaEventSynchronize", with_host_event, 1},
    {"cudaEventQuery", with_event_query, 1},
    {"cudaStreamQuery", with_stream_query, 1},
    {"cudaLaunchHostFunc", with_host_function, 1},
    {"cudaDeviceSynchronize", with_device, 1},
    {"cudaFree", with_free, 1},
    {"the default stream", default_stream, 1},
    {"cudaMemcpy", synchronous_copy, 1},
    {"the per-thread default stream", own_stream, 1},
    {"a free under a kernel", free_under_kernel, 1},
    {"a free under a copy", free_under_copy, 1},
    {"a fill beside a kernel", fill_beside_kernel, 1},
    {"copies of parts", copies_of_parts, 1},
    {"a block that changes streams", reuse, 1},
    {"a capture", capture, 1},
    {"two readers", readers, 0},
    {"streams that come and go", come_and_go, 0},
};

static void check_program(const scene_t *scene, size_t i, bool is_right)
{
    uint64_t expected = is_right ? 0 : programs[i].errors;
    uint64_t before = findings_total(), found = 0;
    char what[128];

    programs[i].run(scene, is_right);
    found = findings_total() - before;
    MUST(cudaDeviceSynchronize());
    snprintf(
        what, sizeof(what), "%s, %s", programs[i].name, is_right ? "right" : "wrong");
    check(
        found == expected, what, "%" PRIu64 " findings, not %" PRIu64, found, expected);
}

static void print_findings(void)
{
    diag_file_t file;

    read_file(&file);
    check(
        strcmp(file.header->source, "active") == 0 &&
            strstr(file.header->mode, "order") != NULL,
        "the source is active", "%s, %s", file.header->source, file.header->mode);
    for (uint32_t i = 0; i < file.header->findings_used; i++) {
        const rmm_diag_finding_t *finding = &file.findings[i];

        printf(
            "finding: kind %u, %s on stream %" PRIu64 ", behind %s on stream %" PRIu64
            ", %" PRIu64 " times\n",
            finding->kind, diag_file_user(&file, finding->user), finding->stream_id,
            finding->other_call == 0 ? "the allocation"
                                     : diag_file_user(&file, finding->other_user),
            finding->other_stream_id, finding->count);
    }
    diag_file_close(&file);
}

static void open_scene(scene_t *scene)
{
    if (rmm_resource_create_from_spec("pool:256MiB", &scene->pool) != RMM_OK) {
        give_up(rmm_last_error_message());
    }
    drop(
        scene, take(scene, NULL), NULL); /* the diagnosis begins with the first block */
    MUST(cudaStreamCreateWithFlags(&scene->a, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&scene->b, cudaStreamNonBlocking));
    MUST(cudaStreamCreate(&scene->normal));
    MUST(cudaEventCreateWithFlags(&scene->event, cudaEventDisableTiming));
    MUST(cudaHostAlloc((void **)&scene->pinned, BLOCK_BYTES, cudaHostAllocDefault));
}

int main(void)
{
    scene_t scene;
    int gpus = 0;

    diagnosed_begin("diag_order", cudaGetDeviceCount(&gpus) == cudaSuccess ? gpus : 0);
    open_scene(&scene);
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        check_program(&scene, i, false);
        check_program(&scene, i, true);
    }
    print_findings();
    return diagnosed_end();
}
