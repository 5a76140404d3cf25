/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose memory over time is known, for test_timeline.py, which has these figures:
 *   plain    five blocks of a pool, at most 5000 bytes at once, 3000 at the end; launches of fill,
 *            scale and fill, and a memset
 *   names    a launch of a kernel with a name that would end a script
 *   streams  two streams with a block and a launch each
 *   many     2000 rounds of an allocation (256 + round bytes), a launch and a free
 *   nothing  a block of no bytes
 * A second argument is the exit status, or "kill".
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

static rmm_resource_t *pool;

static void *take(size_t bytes, rmm_stream_t stream)
{
    void *block = NULL;

    if (rmm_resource_alloc(pool, bytes, 0, stream, &block) != RMM_OK) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
        exit(1);
    }
    return block;
}

static void give(void *block, size_t bytes)
{
    rmm_resource_dealloc(pool, block, bytes, 0, RMM_STREAM_DEFAULT);
}

static void kernel(const void *const *params)
{
    (void)params;
}

static void launch(const char *name, void *a, void *b, rmm_stream_t stream)
{
    const void *params[] = {&a, &b};
    const size_t bytes[] = {sizeof(a), sizeof(b)};

    if (rmm_sim_launch(name, kernel, stream, params, bytes, 2) != 0) {
        exit(1);
    }
}

static void do_plain(void)
{
    void *one = take(1000, RMM_STREAM_DEFAULT);
    void *two = take(2000, RMM_STREAM_DEFAULT);
    void *three = NULL, *four = NULL, *unused = NULL;

    launch("fill", one, two, RMM_STREAM_DEFAULT);
    give(two, 2000);
    three = take(3000, RMM_STREAM_DEFAULT);
    launch("scale", one, three, RMM_STREAM_DEFAULT);
    give(one, 1000);
    four = take(2000, RMM_STREAM_DEFAULT); /* the peak: 3000 and 2000 */
    launch("fill", four, NULL, RMM_STREAM_DEFAULT);
    (void)!rmm_memset_async(four, 0, 2000, RMM_STREAM_DEFAULT);
    give(four, 2000);
    unused = take(1500, RMM_STREAM_DEFAULT);
    give(unused, 1500);
}

static void do_streams(void)
{
    rmm_stream_t first = NULL, second = NULL;

    if (rmm_stream_create(RMM_STREAM_NON_BLOCKING, &first) != RMM_OK ||
        rmm_stream_create(RMM_STREAM_NON_BLOCKING, &second) != RMM_OK) {
        exit(1);
    }
    launch("on_first", take(1000, first), NULL, first);
    launch("on_second", take(2000, second), NULL, second);
}

static void do_many(void)
{
    (void)take(1u << 20, RMM_STREAM_DEFAULT);
    for (size_t i = 0; i < 2000; i++) {
        void *block = take(256 + i, RMM_STREAM_DEFAULT);

        launch("round", block, NULL, RMM_STREAM_DEFAULT);
        give(block, 256 + i);
    }
}

static void act(const char *what)
{
    if (strcmp(what, "plain") == 0) {
        do_plain();
    } else if (strcmp(what, "names") == 0) {
        launch(
            "</script><b>\"'\\\xc3\xa4\n&<!--", take(10, RMM_STREAM_DEFAULT), NULL,
            RMM_STREAM_DEFAULT);
    } else if (strcmp(what, "streams") == 0) {
        do_streams();
    } else if (strcmp(what, "many") == 0) {
        do_many();
    } else {
        (void)take(0, RMM_STREAM_DEFAULT);
    }
}

int main(int argc, char **argv)
{
    rmm_resource_t *cuda = NULL;

    if (argc < 2 || rmm_cuda_resource_create(&cuda) != RMM_OK ||
        rmm_pool_resource_create(cuda, NULL, &pool) != RMM_OK) {
        return 1;
    }
    act(argv[1]);
    if (argc > 2 && strcmp(argv[2], "kill") == 0) {
        (void)raise(SIGKILL);
    }
    return argc > 2 ? atoi(argv[2]) : 0;
}
