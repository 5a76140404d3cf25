/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as users write it, linked with the shared library: allocates from a pool,
 * launches, and prints what the diagnosis must say, one line a live block:
 *   ADDRESS BYTES FIRST_USER LAST_USER LAUNCHES FILLS
 * With the argument "steps" it does what the lines of its input say, and answers each with "ok":
 *   launch, overrun, fork (a child that stays as long as its parent).
 * With the argument "overrun" it also fills one byte more than a block has, three times; a second
 * argument is its exit status, "kill", or "become": it executes itself without arguments. With
 * "guard" a kernel writes one byte past the end. With "many N" it holds N blocks
 * more; with "users N" it holds N blocks of 1024 bytes, each used by a kernel of its own. With
 * "unordered" it uses and frees a block beside its use on another stream, instead;
 * with "ordered" it lets the streams wait. With "unordered_cxx" the kernel has a name of C++. With
 * "under_graph" it frees a block that a captured graph uses, before it destroys the graph.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

static void kernel(const void *const *params)
{
    (void)params;
}

static int launch(const char *name, void *a, void *b)
{
    const void *params[] = {&a, &b};
    const size_t bytes[] = {sizeof(a), sizeof(b)};

    return rmm_sim_launch(name, kernel, RMM_STREAM_LEGACY, params, bytes, 2);
}

static void
expect(const void *block, size_t bytes, const char *users, int launches, int fills)
{
    printf(
        "%" PRIuPTR " %zu %s %d %d\n", (uintptr_t)block, bytes, users, launches, fills);
}

static void use_on(const char *name, void *block, rmm_stream_t stream)
{
    const void *params[] = {&block};
    const size_t bytes[] = {sizeof(block)};

    (void)!rmm_sim_launch(name, kernel, stream, params, bytes, 1);
}

#define CAPTURE_RELAXED 2 /* cudaStreamCaptureModeRelaxed */
#define CXX_KERNEL "_Z5applyILi4EN6nested7functorIJfdillijthEEEEvT0_PfPKd"

/* Two streams, with or without an event that orders them. Its symbol is one of C++. */
static int use_two_streams(
    rmm_resource_t *pool, const char *kernel_name,
    bool is_ordered) __asm__("_ZN4user8two_usesIfEEvPT_") __attribute__((noinline));

static int
use_two_streams(rmm_resource_t *pool, const char *kernel_name, bool is_ordered)
{
    rmm_stream_t first = NULL, second = NULL;
    rmm_sim_event_t event = NULL;
    void *block = NULL;

    if (rmm_stream_create(RMM_STREAM_NON_BLOCKING, &first) != RMM_OK ||
        rmm_stream_create(RMM_STREAM_NON_BLOCKING, &second) != RMM_OK ||
        rmm_sim_event_create(&event) != 0 ||
        rmm_resource_alloc(pool, 4000, 0, first, &block) != RMM_OK) {
        return 1;
    }
    if (is_ordered) {
        (void)!rmm_sim_event_record(event, first);
        (void)!rmm_sim_stream_wait_event(second, event);
    }
    use_on(kernel_name, block, second);
    if (is_ordered) {
        (void)!rmm_sim_event_record(event, second);
        (void)!rmm_sim_stream_wait_event(first, event);
    }
    rmm_resource_dealloc(pool, block, 4000, 0, first);
    return 0;
}

/* Called as a function of the C library is. */
static int use_two_streams_of_cxx(rmm_resource_t *pool) __asm__("start_thread")
    __attribute__((noinline));

/* Its call is not its end: so it has a frame in optimised builds, too. */
static int use_two_streams_of_cxx(rmm_resource_t *pool)
{
    int status = use_two_streams(pool, CXX_KERNEL, false);

    __asm__ volatile("" ::: "memory");
    return status;
}

static int free_under_graph(rmm_resource_t *pool)
{
    rmm_stream_t stream = NULL;
    rmm_sim_graph_t graph;
    void *block = NULL;

    if (rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) != RMM_OK ||
        rmm_resource_alloc(pool, 4000, 0, stream, &block) != RMM_OK ||
        rmm_sim_begin_capture(stream, CAPTURE_RELAXED) != 0) {
        return 1;
    }
    use_on("reduce", block, stream);
    if (rmm_sim_end_capture(stream, &graph) != 0) {
        return 1;
    }
    rmm_resource_dealloc(pool, block, 4000, 0, stream);
    return rmm_sim_graph_destroy(graph);
}

/* Has a frame in optimised builds, too: it is neither inlined, nor is its call its end. */
__attribute__((noinline)) static int overrun(void *block)
{
    int status = rmm_memset_async(block, 0, 1001, RMM_STREAM_DEFAULT);
    __asm__ volatile("" ::: "memory");
    return status;
}

/* It ends with its parent. */
static void stay_in_child(void)
{
    pid_t parent = getpid();

    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent) {
            pause();
        }
        _exit(0);
    }
}

static void step(const char *line, void *block)
{
    if (strcmp(line, "launch\n") == 0) {
        launch("fill", block, NULL);
    } else if (strcmp(line, "overrun\n") == 0) {
        (void)overrun(block);
    } else if (strcmp(line, "fork\n") == 0) {
        stay_in_child();
    }
}

static int take_steps(void *block)
{
    char line[80];
    puts("ok");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        step(line, block);
        puts("ok");
        fflush(stdout);
    }
    return 0;
}

static void write_past(const void *const *params)
{
    unsigned char *block = NULL;

    memcpy(&block, params[0], sizeof(block));
    block[1000] = 0;
}

/* The second launch finds what the first has done. */
static int break_guard(void *block)
{
    const void *params[] = {&block};
    const size_t bytes[] = {sizeof(block)};

    for (int i = 0; i < 2; i++) {
        if (rmm_sim_launch("scale", write_past, RMM_STREAM_LEGACY, params, bytes, 1) !=
                0 ||
            rmm_sim_device_synchronize() != 0) {
            return 1;
        }
    }
    return 0;
}

static int hold_many(rmm_resource_t *pool, int count, bool are_used)
{
    const size_t bytes = are_used ? 1024 : 1;
    void *block = NULL;

    for (int i = 0; i < count; i++) {
        char name[16];

        if (rmm_resource_alloc(pool, bytes, 0, RMM_STREAM_DEFAULT, &block) != RMM_OK) {
            return 1;
        }
        if (are_used) {
            (void)snprintf(name, sizeof(name), "user%d", i);
            use_on(name, block, RMM_STREAM_DEFAULT);
        }
    }
    return 0;
}

/* Another resource takes the place that the pool of these blocks has in the segment. */
static int end_pool(rmm_resource_t *cuda, rmm_resource_t *pool, void *input)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;

    rmm_resource_dealloc(pool, input, 1000, 0, RMM_STREAM_DEFAULT);
    rmm_resource_release(pool);
    options.name = "later";
    return rmm_pool_resource_create(cuda, &options, &pool) == RMM_OK &&
                   rmm_resource_alloc(pool, 1000, 0, RMM_STREAM_DEFAULT, &input) ==
                       RMM_OK
               ? 0
               : 1;
}

static void use_all(char *input, char *output)
{
    for (int i = 0; i < 5; i++) {
        launch("fill", input, NULL);
        launch("scale", input + 999, output + 69999);
    }
    launch("sum", output, output);
}

/* "freed": as it should be; "twice": one block once more; "left": not that one. */
static int end_blocks(
    rmm_resource_t *cuda, rmm_resource_t *pool, void *const blocks[3], const char *how)
{
    static const size_t sizes[] = {1000, 70000, 1};
    int first = strcmp(how, "left") == 0 ? 1 : 0;

    use_all(blocks[0], blocks[1]);
    for (int i = first; i < 3; i++) {
        rmm_resource_dealloc(pool, blocks[i], sizes[i], 0, RMM_STREAM_DEFAULT);
    }
    if (strcmp(how, "twice") == 0) {
        rmm_resource_dealloc(pool, blocks[0], sizes[0], 0, RMM_STREAM_DEFAULT);
    }
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
    return 0;
}

static bool ends_blocks(const char *how)
{
    return strcmp(how, "left") == 0 || strcmp(how, "twice") == 0 ||
           strcmp(how, "freed") == 0;
}

int main(int argc, char **argv)
{
    rmm_resource_t *cuda = NULL, *pool = NULL;
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    void *input = NULL, *output = NULL, *idle = NULL;

    options.name = "activations";
    if (rmm_cuda_resource_create(&cuda) != RMM_OK ||
        rmm_pool_resource_create(cuda, &options, &pool) != RMM_OK ||
        rmm_resource_alloc(pool, 1000, 0, RMM_STREAM_DEFAULT, &input) != RMM_OK ||
        rmm_resource_alloc(pool, 70000, 0, RMM_STREAM_DEFAULT, &output) != RMM_OK ||
        rmm_resource_alloc(pool, 1, 0, RMM_STREAM_DEFAULT, &idle) != RMM_OK) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
        return 1;
    }
    if (argc > 1 && strstr(argv[1], "ordered") != NULL) {
        return strstr(argv[1], "_cxx") != NULL
                   ? use_two_streams_of_cxx(pool)
                   : use_two_streams(pool, "reduce", strcmp(argv[1], "ordered") == 0);
    }
    if (argc > 1 && strcmp(argv[1], "under_graph") == 0) {
        return free_under_graph(pool);
    }
    if (argc > 1 && strcmp(argv[1], "ended") == 0) {
        rmm_resource_dealloc(pool, output, 70000, 0, RMM_STREAM_DEFAULT);
        rmm_resource_dealloc(pool, idle, 1, 0, RMM_STREAM_DEFAULT);
        return overrun(input) == RMM_OK ? end_pool(cuda, pool, input) : 1;
    }
    if (argc > 1 && ends_blocks(argv[1])) {
        return end_blocks(cuda, pool, (void *const[]){input, output, idle}, argv[1]);
    }
    if (argc > 1 && strcmp(argv[1], "guard") == 0) {
        return break_guard(input);
    }
    if (argc > 2 && (strcmp(argv[1], "many") == 0 || strcmp(argv[1], "users") == 0)) {
        return hold_many(pool, atoi(argv[2]), argv[1][0] == 'u');
    }
    if (argc > 1 && strcmp(argv[1], "steps") == 0) {
        return take_steps(input);
    }
    use_all(input, output);
    bool overruns = argc > 1 && strcmp(argv[1], "overrun") == 0;
    for (int i = 0; overruns && i < 3; i++) {
        if (overrun(input) != RMM_OK) {
            return 1;
        }
    }
    expect(
        input, 1000, overruns ? "fill memset_async" : "fill scale", 10,
        overruns ? 3 : 0);
    expect(output, 70000, "scale sum", 6, 0);
    expect(idle, 1, "none none", 0, 0);
    if (argc > 2 && strcmp(argv[2], "kill") == 0) {
        (void)raise(SIGKILL);
    }
    if (argc > 2 && strcmp(argv[2], "become") == 0) {
        (void)execl(argv[0], argv[0], NULL);
    }
    return argc > 2 ? atoi(argv[2]) : 0; /* with the blocks: a block freed has no row */
}
