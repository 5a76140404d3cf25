/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guards on a real GPU: each program once with one error, which must be one finding of the right
 * kernel, and once right, without any. Then correct programs in which nothing orders a check behind
 * what it looks at. Run it under rmm-run:
 *
 *   rmm-run --diag guards -- diag_guards
 *
 * Output and exit status are those of diag_usage.
 */
#include "gpu/diag_guards.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <cuda_runtime.h>

#include <rmm/rmm.h>

#include "gpu/diagnosed.h"

enum { BYTES = 1000, PADDED = 1024, GUARDED = 1280, UNORDERED_ROUNDS = 2000 };

static cudaStream_t a, b; /* neither waits for the default stream */

static void must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        printf("%s: %s\n", what, cudaGetErrorString(error));
        give_up(what);
    }
}

#define MUST(call) must((cudaError_t)(call), #call)

static rmm_resource_t *make(const char *spec)
{
    rmm_resource_t *mr = NULL;

    if (rmm_resource_create_from_spec(spec, &mr) != RMM_OK) {
        printf("%s\n", rmm_last_error_message());
        give_up(spec);
    }
    return mr;
}

static char *take(rmm_resource_t *mr, size_t bytes, cudaStream_t stream)
{
    void *block = NULL;

    if (rmm_resource_alloc(mr, bytes, 0, (rmm_stream_t)stream, &block) != RMM_OK) {
        give_up(rmm_last_error_message());
    }
    return block;
}

static void drop(rmm_resource_t *mr, char *block, size_t bytes, cudaStream_t stream)
{
    rmm_resource_dealloc(mr, block, bytes, 0, (rmm_stream_t)stream);
}

static void let_wait(cudaStream_t later, cudaStream_t earlier)
{
    cudaEvent_t event = NULL;

    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    MUST(cudaEventRecord(event, earlier));
    MUST(cudaStreamWaitEvent(later, event, 0));
    MUST(cudaEventDestroy(event));
}

/* The diagnosis looks at what its work has found when it is called next. */
static uint64_t found_now(void)
{
    static rmm_resource_t *cuda;

    MUST(cudaDeviceSynchronize());
    cuda = cuda != NULL ? cuda : make("cuda");
    drop(cuda, take(cuda, 256, NULL), 256, NULL);
    return findings_total();
}

/* --- a byte in the block, or beyond ------------------------------------------------------- */

typedef struct program {
    const char *name;
    const char *spec;
    int64_t wrong; /* offset of the byte; right is the last of the block */
    void (*run)(rmm_resource_t *mr, int64_t offset);
    bool is_unnamed; /* the kernel cannot be told */
} program_t;

static void poke(rmm_resource_t *mr, int64_t offset)
{
    char *block = take(mr, BYTES, NULL);
    char *other = take(mr, BYTES, NULL);

    MUST(guards_right(block, BYTES, NULL));
    MUST(guards_right(other, BYTES, NULL));
    MUST(guards_poke(block, offset, NULL));
    MUST(guards_right(block, BYTES, NULL));
    drop(mr, block, BYTES, NULL);
    drop(mr, other, BYTES, NULL);
}

/* The block in front of it is there, so that its gap is. */
static void poke_before(rmm_resource_t *mr, int64_t offset)
{
    char *first = take(mr, PADDED, NULL), *second = take(mr, PADDED, NULL);
    char *later = first < second ? second : first;

    if (later - (first < second ? first : second) != GUARDED) {
        give_up("two blocks lie beside each other");
    }
    MUST(guards_poke(later, offset, NULL));
    MUST(guards_right(first, PADDED, NULL));
    drop(mr, first, PADDED, NULL);
    drop(mr, second, PADDED, NULL);
}

static void poke_range(rmm_resource_t *mr, int64_t offset)
{
    char *block = take(mr, BYTES, a);

    MUST(guards_poke_range(block, offset + 1, (rmm_stream_t)a));
    drop(mr, block, BYTES, a);
}

static void poke_tiny(rmm_resource_t *mr, int64_t offset)
{
    char *block = take(mr, 1, a);

    MUST(guards_poke(block, offset == BYTES - 1 ? 0 : 1, (rmm_stream_t)a));
    drop(mr, block, 1, a);
}

static void poke_huge(rmm_resource_t *mr, int64_t offset)
{
    size_t bytes = (size_t)64 << 20;
    char *block = take(mr, bytes, a);

    MUST(guards_poke(
        block, (int64_t)bytes - (offset == BYTES - 1 ? 1 : 0), (rmm_stream_t)a));
    drop(mr, block, bytes, a);
}

static void poke_pair(rmm_resource_t *mr, int64_t offset)
{
    guards_pair_t pair = {1, take(mr, BYTES, a), take(mr, BYTES, a), offset};

    MUST(guards_poke_pair(&pair, (rmm_stream_t)a));
    MUST(guards_right(pair.first, BYTES, (rmm_stream_t)a));
    drop(mr, pair.first, BYTES, a);
    drop(mr, pair.second, BYTES, a);
}

static void poke_extended(rmm_resource_t *mr, int64_t offset)
{
    char *block = take(mr, BYTES, a);

    MUST(guards_poke_extended(block, offset, (rmm_stream_t)a));
    drop(mr, block, BYTES, a);
}

static void poke_cooperative(rmm_resource_t *mr, int64_t offset)
{
    char *block = take(mr, BYTES, a);

    MUST(guards_poke_cooperative(block, offset, (rmm_stream_t)a));
    drop(mr, block, BYTES, a);
}

static void poke_on_another_stream(rmm_resource_t *mr, int64_t offset)
{
    char *block = take(mr, BYTES, a);

    MUST(guards_right(block, BYTES, (rmm_stream_t)a));
    let_wait(b, a);
    MUST(guards_poke(block, offset, (rmm_stream_t)b));
    let_wait(a, b);
    MUST(guards_right(block, BYTES, (rmm_stream_t)a));
    drop(mr, block, BYTES, a);
}

/* At the same time as correct kernels that have the block beside. */
static void poke_beside(rmm_resource_t *mr, int64_t offset)
{
    char *block = take(mr, BYTES, a), *beside = take(mr, BYTES, b);

    MUST(guards_wait(2000000, (rmm_stream_t)a));
    for (int i = 0; i < 20; i++) {
        MUST(guards_right(beside, BYTES, (rmm_stream_t)b));
    }
    MUST(guards_poke(block, offset, (rmm_stream_t)a));
    for (int i = 0; i < 20; i++) {
        MUST(guards_right(beside, BYTES, (rmm_stream_t)b));
    }
    MUST(cudaDeviceSynchronize());
    drop(mr, block, BYTES, a);
    drop(mr, beside, BYTES, b);
}

/* The memory is another block's before the check has run. */
static void poke_and_free(rmm_resource_t *mr, int64_t offset)
{
    char *block = take(mr, BYTES, a), *next = NULL;

    MUST(guards_wait(2000000, (rmm_stream_t)a));
    MUST(guards_poke(block, offset, (rmm_stream_t)a));
    drop(mr, block, BYTES, a);
    next = take(mr, BYTES * 5, a);
    MUST(guards_right(next, BYTES * 5, (rmm_stream_t)a));
    drop(mr, next, BYTES * 5, a);
}

static void poke_by_a_table(rmm_resource_t *mr, int64_t offset)
{
    char *table = take(mr, sizeof(char *), a), *block = take(mr, BYTES, a);

    MUST(cudaMemcpyAsync(table, &block, sizeof(block), cudaMemcpyDefault, a));
    MUST(guards_poke_table((char **)(void *)table, offset, (rmm_stream_t)a));
    drop(mr, block, BYTES, a);
    drop(mr, table, sizeof(char *), a);
}

/* Found before the free, as no launch is behind which it could be looked for. */
static void poke_in_a_graph(rmm_resource_t *mr, int64_t offset)
{
    char *block = take(mr, BYTES, a), *inside = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;

    MUST(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    MUST(guards_poke(block, offset, (rmm_stream_t)a));
    inside = take(mr, BYTES, a);
    MUST(guards_right(inside, BYTES, (rmm_stream_t)a));
    drop(mr, inside, BYTES, a);
    MUST(cudaStreamEndCapture(a, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    MUST(cudaGraphLaunch(executable, a));
    MUST(cudaGraphLaunch(executable, a));
    drop(mr, block, BYTES, a);
    MUST(cudaStreamSynchronize(a));
    MUST(cudaGraphExecDestroy(executable));
    MUST(cudaGraphDestroy(graph));
}

static const program_t programs[] = {
    {"padding, cuda", "cuda", BYTES, poke, false},
    {"padding, managed", "managed", BYTES, poke, false},
    {"padding, async", "async", BYTES, poke, false},
    {"padding, pool", "pool:256MiB", BYTES, poke, false},
    {"padding, virtual pool", "pool_virtual:256MiB", BYTES, poke, false},
    {"padding, arena", "arena:256MiB", BYTES, poke, false},
    {"padding, fixed_size", "fixed_size", BYTES, poke, false},
    {"padding, binning", "binning", BYTES, poke, false},
    {"behind the padding, cuda", "cuda", PADDED, poke, false},
    {"behind the padding, pool", "pool:256MiB", PADDED, poke, false},
    {"last byte of the gap, virtual pool", "pool_virtual:256MiB", GUARDED - 1, poke,
     false},
    {"before the block, pool", "pool:256MiB", -1, poke_before, false},
    {"before the block, virtual pool", "pool_virtual:256MiB", -4, poke_before, false},
    {"many bytes", "pool:256MiB", BYTES + 200, poke_range, false},
    {"block of a byte", "pool:256MiB", BYTES, poke_tiny, false},
    {"large block", "pool:256MiB", BYTES, poke_huge, false},
    {"struct by value", "pool:256MiB", BYTES, poke_pair, false},
    {"cudaLaunchKernelEx", "pool:256MiB", BYTES, poke_extended, false},
    {"cooperative", "pool:256MiB", BYTES, poke_cooperative, false},
    {"another stream", "pool:256MiB", BYTES, poke_on_another_stream, false},
    {"another stream, async", "async", BYTES, poke_on_another_stream, false},
    {"two streams at a time", "pool:256MiB", BYTES, poke_beside, false},
    {"freed at once", "pool:256MiB", BYTES, poke_and_free, false},
    {"freed at once, async", "async", BYTES, poke_and_free, false},
    {"pointer in memory", "pool:256MiB", BYTES, poke_by_a_table, true},
    {"graph", "pool:256MiB", BYTES, poke_in_a_graph, true},
};

enum { PROGRAMS = sizeof(programs) / sizeof(programs[0]), NAME_BYTES = 256 };

/* The finding that was made or counted last. */
static bool is_named_rightly(const program_t *program, char name[NAME_BYTES])
{
    const rmm_diag_finding_t *last = NULL;
    diag_file_t file;
    bool good;

    read_file(&file);
    for (uint32_t i = 0; i < file.header->findings.used; i++) {
        if (last == NULL || file.findings[i].last_ns > last->last_ns) {
            last = &file.findings[i];
        }
    }
    snprintf(
        name, NAME_BYTES, "%s",
        last != NULL ? diag_file_user(&file, last->user) : "nothing");
    good =
        program->is_unnamed ? strcmp(name, "none") == 0 : strncmp(name, "poke", 4) == 0;
    diag_file_close(&file);
    return good;
}

static void check_program(const program_t *program, bool is_right)
{
    rmm_resource_t *mr = make(program->spec);
    uint64_t before = found_now(), found = 0;
    char what[128], name[NAME_BYTES] = "";

    program->run(mr, is_right ? (program->wrong < 0 ? 0 : BYTES - 1) : program->wrong);
    found = found_now() - before;
    snprintf(what, sizeof(what), "%s, %s", program->name, is_right ? "right" : "wrong");
    check(
        found == (is_right ? 0 : 1), what, "%" PRIu64 " findings, not %d", found,
        is_right ? 0 : 1);
    if (!is_right && found != 0) {
        check(is_named_rightly(program, name), "the kernel is named", "%s", name);
    }
    rmm_resource_release(mr);
}

/* --- correct programs --------------------------------------------------------------------- */

/* A kernel on one stream is given blocks of another, and follows no pointer. */
static void pass_pointers(const char *spec)
{
    rmm_resource_t *mr = make(spec);
    uint64_t before = found_now();

    for (int i = 0; i < UNORDERED_ROUNDS; i++) {
        size_t bytes = 200 + (size_t)(i % 7) * 300;
        char *block = take(mr, bytes, a);

        MUST(guards_ignore(block, NULL, (rmm_stream_t)b));
        MUST(guards_right(block, (int64_t)bytes, (rmm_stream_t)a));
        MUST(guards_ignore(block, NULL, (rmm_stream_t)b));
        drop(mr, block, bytes, a);
        block = take(mr, bytes * 3, a);
        MUST(guards_right(block, (int64_t)bytes * 3, (rmm_stream_t)a));
        MUST(guards_ignore(block, NULL, (rmm_stream_t)b));
        drop(mr, block, bytes * 3, a);
    }
    check(
        found_now() == before, "pointers that are not followed", "%s: %" PRIu64, spec,
        found_now() - before);
    rmm_resource_release(mr);
}

static void *allocate_and_launch(void *argument)
{
    rmm_resource_t *mr = argument;
    cudaStream_t stream = NULL;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (size_t i = 0; i < 1000; i++) {
        size_t bytes = 1 + i * 37 % 5000;
        char *block = take(mr, bytes, stream);

        MUST(guards_right(block, (int64_t)bytes, (rmm_stream_t)stream));
        drop(mr, block, bytes, stream);
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamDestroy(stream));
    return NULL;
}

static void use_from_threads(void)
{
    rmm_resource_t *mr = make("pool:256MiB");
    uint64_t before = found_now();
    pthread_t threads[8];

    for (int i = 0; i < 8; i++) {
        if (pthread_create(&threads[i], NULL, allocate_and_launch, mr) != 0) {
            give_up("threads");
        }
    }
    for (int i = 0; i < 8; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    check(found_now() == before, "eight threads", "%" PRIu64, found_now() - before);
    rmm_resource_release(mr);
}

static atomic_bool is_over;

static void *allocate_until_over(void *argument)
{
    while (!atomic_load(&is_over)) {
        char *block = take(argument, BYTES, b);

        MUST(guards_right(block, BYTES, (rmm_stream_t)b));
        drop(argument, block, BYTES, b);
    }
    return NULL;
}

/* What guards queue leaves the capture of another thread whole. */
static void capture_beside_a_thread(void)
{
    rmm_resource_t *mr = make("pool:256MiB");
    uint64_t before = found_now();
    char *block = take(mr, BYTES, a);
    pthread_t thread;
    bool good = pthread_create(&thread, NULL, allocate_until_over, mr) == 0;

    for (int i = 0; i < 100 && good; i++) {
        cudaGraph_t graph = NULL;

        MUST(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
        MUST(guards_right(block, BYTES, (rmm_stream_t)a));
        good = cudaStreamEndCapture(a, &graph) == cudaSuccess && graph != NULL;
        MUST(cudaGraphDestroy(graph));
    }
    atomic_store(&is_over, true);
    (void)pthread_join(thread, NULL);
    drop(mr, block, BYTES, a);
    check(good, "captures stay whole", "one was ruined");
    check(found_now() == before, "nothing is found", "%" PRIu64, found_now() - before);
    rmm_resource_release(mr);
}

static void print_findings(void)
{
    diag_file_t file;

    read_file(&file);
    check(
        strcmp(file.header->source, "active") == 0 &&
            strstr(file.header->mode, "guards") != NULL &&
            (file.header->modes_on & 16) != 0 && file.header->guards_error == 0,
        "the source is active", "%s, %s, error %" PRIu64, file.header->source,
        file.header->mode, file.header->guards_error);
    for (uint32_t i = 0; i < file.header->findings.used; i++) {
        const rmm_diag_finding_t *finding = &file.findings[i];

        printf(
            "finding: %s at %" PRId64 " of %" PRIu64 " bytes, %" PRIu64 " times\n",
            diag_file_user(&file, finding->user),
            (int64_t)(finding->address - finding->block_address), finding->block_bytes,
            finding->count);
    }
    printf(
        "guards: %" PRIu64 " checks, %" PRIu64 " missing, %" PRIu64 " unchecked\n",
        file.header->guard_checks, file.header->guards_missing,
        file.header->guards_unchecked);
    diag_file_close(&file);
}

int main(void)
{
    int gpus = 0;

    diagnosed_begin("diag_guards", cudaGetDeviceCount(&gpus) == cudaSuccess ? gpus : 0);
    MUST(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    for (size_t i = 0; i < PROGRAMS; i++) {
        check_program(&programs[i], false);
        check_program(&programs[i], true);
    }
    pass_pointers("pool:256MiB");
    pass_pointers("pool_virtual:256MiB");
    pass_pointers("async");
    use_from_threads();
    capture_beside_a_thread();
    print_findings();
    return diagnosed_end();
}
