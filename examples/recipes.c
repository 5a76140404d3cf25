/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of the how-to guides, each with what a page looks for. They launch on the simulated
 * GPU; on a real one the launches would be kernels. `serve`, `grow` and `fragment` go on in the
 * background and print their pid.
 */
#include <rmm/rmm.h>
#include <rmm/sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rmm_resource_t *mr;

static void must(int error)
{
    if (error) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
        exit(1);
    }
}

static void *take(size_t bytes, rmm_stream_t stream)
{
    void *block;
    must(rmm_resource_alloc(mr, bytes, 0, stream, &block));
    return block;
}

static void kernel(const void *const *params)
{
    (void)params;
}

static void launch(const char *name, void *block, rmm_stream_t stream)
{
    const void *params[] = {&block};
    const size_t bytes[] = {sizeof(block)};
    must(rmm_sim_launch(name, kernel, stream, params, bytes, 1));
}

/* Who holds the peak? */
static void train(void)
{
    void *weights = take(6000000, RMM_STREAM_DEFAULT);
    void *activations = take(10000000, RMM_STREAM_DEFAULT), *gradients;
    launch("embed", weights, RMM_STREAM_DEFAULT);
    launch("attention", activations, RMM_STREAM_DEFAULT);
    gradients = take(4000000, RMM_STREAM_DEFAULT);
    launch("backward", gradients, RMM_STREAM_DEFAULT);
    rmm_resource_dealloc(mr, gradients, 4000000, 0, RMM_STREAM_DEFAULT);
    rmm_resource_dealloc(mr, activations, 10000000, 0, RMM_STREAM_DEFAULT);
    rmm_resource_dealloc(mr, weights, 6000000, 0, RMM_STREAM_DEFAULT);
}

/* Who wrote past this block? The rows are counted from 0, and cleared up to the last one. */
static void clear_rows(char *table, size_t rows)
{
    must(rmm_memset_async(table, 0, (rows + 1) * 100, RMM_STREAM_DEFAULT));
}

static void overrun(void)
{
    void *table = take(1000, RMM_STREAM_DEFAULT);
    clear_rows(table, 10);
    rmm_resource_dealloc(mr, table, 1000, 0, RMM_STREAM_DEFAULT);
}

/* Did my stream order break? */
static void unordered(void)
{
    rmm_stream_t loads, computes;
    void *batch;
    must(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &loads));
    must(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &computes));
    batch = take(5000, loads);
    must(rmm_memset_async(batch, 0, 5000, loads));
    launch("attention", batch, computes); /* does not wait for `loads` */
    must(rmm_stream_synchronize(computes));
    rmm_resource_dealloc(mr, batch, 5000, 0, loads);
}

/* Who used this block after its free? The answer is looked at when its owner is gone. */
static void close_session(void *session)
{
    rmm_resource_dealloc(mr, session, 8000, 0, RMM_STREAM_DEFAULT);
}

static void late(void)
{
    void *session = take(8000, RMM_STREAM_DEFAULT);
    must(rmm_memset_async(session, 0, 8000, RMM_STREAM_DEFAULT));
    close_session(session);
    launch("score", session, RMM_STREAM_DEFAULT);
}

/* Why does this grow? Of each answer a block stays behind. */
static void answer_request(void)
{
    void *question = take(1000, RMM_STREAM_DEFAULT);
    void *cached = take(3000, RMM_STREAM_DEFAULT);
    launch("attention", question, RMM_STREAM_DEFAULT);
    launch("attention", cached, RMM_STREAM_DEFAULT);
    rmm_resource_dealloc(mr, question, 1000, 0, RMM_STREAM_DEFAULT);
}

static void grow(void)
{
    rmm_tracking_options_t options = RMM_TRACKING_OPTIONS_INIT;
    options.capture_stacks = true;
    must(rmm_tracking_adaptor_create(mr, &options, &mr));
    for (int i = 0; i < 3; i++) {
        answer_request();
    }
}

/* Which kernel last used this block? */
static void serve(void)
{
    void *weights = take(5000000, RMM_STREAM_DEFAULT);
    launch("embed", weights, RMM_STREAM_DEFAULT);
    launch("attention", weights, RMM_STREAM_DEFAULT);
}

/* Is it fragmented? Every second block is free. */
static void fragment(void)
{
    void *blocks[16];
    for (int i = 0; i < 16; i++) {
        blocks[i] = take(1 << 20, RMM_STREAM_DEFAULT);
    }
    must(rmm_stream_synchronize(RMM_STREAM_DEFAULT));
    for (int i = 0; i < 16; i += 2) {
        rmm_resource_dealloc(mr, blocks[i], 1 << 20, 0, RMM_STREAM_DEFAULT);
    }
}

static const struct {
    const char *name;
    void (*work)(void);
    int stays; /* in the background */
} programs[] = {
    {"train", train, 0},       {"overrun", overrun, 0}, {"unordered", unordered, 0},
    {"late", late, 0},         {"grow", grow, 1},       {"serve", serve, 1},
    {"fragment", fragment, 1},
};

static void run(void (*work)(void))
{
    must(rmm_get_current_device_resource(&mr)); /* RMM_RESOURCE says which */
    work();
}

/* In a child that stays, as the first thing that it does: forks and GPUs do not mix. The pid is
 * printed when its work is done. */
static void run_in_background(void (*work)(void))
{
    int ends[2];
    char done;
    if (pipe(ends) != 0) {
        exit(1);
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        close(STDOUT_FILENO); /* a shell waits for its end */
        run(work);
        while (write(ends[1], "d", 1) == 1) {
            pause();
        }
        exit(1);
    }
    close(ends[1]);
    if (read(ends[0], &done, 1) != 1) {
        exit(1);
    }
    printf("%d\n", (int)pid);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        if (argc == 2 && strcmp(argv[1], programs[i].name) == 0) {
            (programs[i].stays ? run_in_background : run)(programs[i].work);
            return 0;
        }
    }
    fprintf(
        stderr, "usage: recipes train|overrun|late|unordered|grow|serve|fragment\n");
    return 2;
}
