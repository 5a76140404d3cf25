/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a forked child may still do with the library: host memory works, whatever needs
 * CUDA is refused with a reason, and nothing ever waits for a lock that a thread of the
 * parent held at the fork. Every case runs in a child of its own, as the parent's state
 * (which driver calls were made before the fork) matters.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmm/torch.h>

#include "core/local_time.h"
#include "harness/adaptors.h"
#include "harness/no_leak_check.h"
#include "harness/runtime.h"
#include "publish/accounting.h"

#define PATIENCE_S 100 /* a child that hangs is ended by SIGALRM */

/* The status of waitpid() for a child that runs body and exits. */
static int in_child(void (*body)(void))
{
    pid_t pid;
    int status = -1;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        alarm(PATIENCE_S);
        body();
        exit(0);
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

#define CHECK_CHILD(body) CHECK(in_child(body) == 0)

/* --- what needs no GPU ---------------------------------------------------------------- */

static bool is_shared; /* other threads use the same host resource */

static void use_host_memory(rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    char *ptr = NULL;

    CHECK(rmm_resource_alloc(mr, 1000, 0, NULL, (void **)&ptr) == RMM_OK);
    memset(ptr, 7, 1000);
    CHECK(rmm_resource_get_stats(mr, &stats) == RMM_OK);
    CHECK(is_shared || stats.current_bytes == 1000);
    rmm_resource_dealloc(mr, ptr, 1000, 0, NULL);
    CHECK(rmm_resource_get_stats(mr, &stats) == RMM_OK);
    CHECK(is_shared || stats.current_bytes == 0);
    CHECK(is_shared || stats.peak_bytes == 1000);
}

static rmm_resource_t *the_host; /* the parent's */
static void *the_block;

static unsigned messages;

static void count_message(rmm_log_level_t level, const char *message, void *arg)
{
    messages++;
}

/* What is out is the parent's: the child's last release does not complain. */
static void release_in_the_child(rmm_resource_t *mr)
{
    CHECK(rmm_log_set_level(RMM_LEVEL_ERROR) == RMM_OK);
    CHECK(rmm_log_to_callback(count_message, NULL) == RMM_OK);
    rmm_resource_release(mr);
    CHECK(messages == 0);
}

static void make_host_memory_in_the_child(void)
{
    rmm_resource_t *own, *again;
    void *ptr;

    CHECK(rmm_host_resource_create(&own) == RMM_OK);
    CHECK(own != the_host);
    CHECK(rmm_host_resource_create(&again) == RMM_OK);
    CHECK(own == again); /* all host resources are equal */
    rmm_resource_release(again);
    use_host_memory(own);
    rmm_resource_release(own);
    CHECK(rmm_resource_alloc(the_host, 10, 0, NULL, &ptr) == RMM_ERR_UNSUPPORTED);
    rmm_resource_dealloc(the_host, the_block, 1000, 0, NULL);
    release_in_the_child(the_host);
}

static rmm_resource_t *the_childs;

static void read_figures_of_the_child(void)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    CHECK(rmm_resource_get_stats(the_childs, &stats) == RMM_OK);
    CHECK(stats.current_bytes == 1000);
}

/* What the child counted in the place of its parent's segment is its own child's too. */
static void have_a_child_of_its_own(void)
{
    void *ptr;

    CHECK(rmm_host_resource_create(&the_childs) == RMM_OK);
    CHECK(rmm_resource_alloc(the_childs, 1000, 0, NULL, &ptr) == RMM_OK);
    CHECK_CHILD(read_figures_of_the_child);
    rmm_resource_dealloc(the_childs, ptr, 1000, 0, NULL);
    rmm_resource_release(the_childs);
}

static void make_host_memory_before_the_fork(void)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    CHECK(rmm_host_resource_create(&the_host) == RMM_OK);
    CHECK(rmm_resource_alloc(the_host, 1000, 0, NULL, &the_block) == RMM_OK);
    CHECK_CHILD(make_host_memory_in_the_child);
    CHECK_CHILD(have_a_child_of_its_own);
    CHECK(rmm_resource_get_stats(the_host, &stats) == RMM_OK);
    CHECK(stats.current_bytes == 1000); /* the child's free was the child's */
    rmm_resource_dealloc(the_host, the_block, 1000, 0, NULL);
    rmm_resource_release(the_host);
}

static void make_unpublished_host_memory_before_the_fork(void)
{
    setenv("RMM_PUBLISH", "0", 1);
    make_host_memory_before_the_fork();
}

TEST_CASE(a_child_makes_host_memory_of_its_own)
{
    assert_int_equal(in_child(make_host_memory_before_the_fork), 0);
    assert_int_equal(in_child(make_unpublished_host_memory_before_the_fork), 0);
}

static rmm_status_t
callback_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    *ptr_out = aligned_alloc(RMM_ALIGN_DEFAULT, (bytes + 255) / 256 * 256);
    return *ptr_out != NULL ? RMM_OK : RMM_ERR_OUT_OF_MEMORY;
}

static void
callback_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    free(ptr);
}

static rmm_status_t make_callback(rmm_resource_t **out)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;

    options.alloc = callback_alloc;
    options.dealloc = callback_dealloc;
    options.properties = RMM_HOST_ACCESSIBLE;
    return rmm_callback_resource_create(&options, out);
}

static rmm_status_t build_limiting(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;

    options.limit_bytes = MIB;
    return rmm_limiting_adaptor_create(upstream, &options, out);
}

static rmm_status_t build_wait(rmm_resource_t *upstream, rmm_resource_t **out)
{
    return rmm_wait_adaptor_create(upstream, NULL, out);
}

static rmm_status_t build_fallback(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_fallback_options_t options = RMM_FALLBACK_OPTIONS_INIT;

    options.alternate = upstream;
    return rmm_fallback_adaptor_create(upstream, &options, out);
}

typedef rmm_status_t (*build_fn)(rmm_resource_t *upstream, rmm_resource_t **out);

static const build_fn builders[] = {
    build_logging,     build_statistics, build_tracking_stacks, build_limiting,
    build_thread_safe, build_wait,       build_fallback};

/* All that the library does without a GPU. */
static void use_all_without_a_gpu(void)
{
    rmm_resource_t *bases[2];

    CHECK(rmm_host_resource_create(&bases[0]) == RMM_OK);
    CHECK(make_callback(&bases[1]) == RMM_OK);
    for (size_t i = 0; i < 2; i++) {
        use_host_memory(bases[i]);
        for (size_t k = 0; k < sizeof(builders) / sizeof(builders[0]); k++) {
            rmm_resource_t *adaptor;

            CHECK(builders[k](bases[i], &adaptor) == RMM_OK);
            use_host_memory(adaptor);
            rmm_resource_release(adaptor);
        }
        rmm_resource_release(bases[i]);
    }
}

/* --- what needs one ------------------------------------------------------------------- */

static rmm_status_t try_device(rmm_resource_t **out)
{
    int count;

    return rmm_device_count(&count);
}

static rmm_status_t try_memory_info(rmm_resource_t **out)
{
    size_t free_bytes, total_bytes;

    return rmm_available_device_memory(&free_bytes, &total_bytes);
}

static rmm_status_t try_stream(rmm_resource_t **out)
{
    rmm_stream_t stream;

    return rmm_stream_create(0, &stream);
}

static rmm_status_t try_stream_pool(rmm_resource_t **out)
{
    rmm_stream_pool_t *pool;

    return rmm_stream_pool_create(2, 0, &pool);
}

static rmm_status_t try_synchronize(rmm_resource_t **out)
{
    return rmm_stream_synchronize(NULL);
}

static rmm_status_t make_spec(rmm_resource_t **out)
{
    return rmm_resource_create_from_spec("pool", out);
}

static rmm_status_t set_default(rmm_resource_t **out)
{
    return rmm_set_per_device_resource(0, NULL, NULL);
}

typedef rmm_status_t (*make_fn)(rmm_resource_t **out);

static const make_fn need_cuda[] = {
    rmm_cuda_resource_create,
    rmm_managed_resource_create,
    rmm_pinned_resource_create,
    rmm_system_resource_create,
    rmm_async_managed_resource_create,
    create_async,
    create_virtual_pool,
    make_spec,
    rmm_get_current_device_resource,
    set_default,
    try_device,
    try_memory_info,
    try_stream,
    try_stream_pool,
    try_synchronize,
};

enum { NEED_CUDA = sizeof(need_cuda) / sizeof(need_cuda[0]) };

static rmm_stream_t the_stream;
static rmm_stream_pool_t *the_streams;

static void is_refused_whatever_needs_cuda(void)
{
    for (size_t i = 0; i < NEED_CUDA; i++) {
        rmm_resource_t *mr = NULL;
        rmm_status_t status = need_cuda[i](&mr);

        if (status != RMM_ERR_UNSUPPORTED ||
            strstr(rmm_last_error_message(), "fork") == NULL || mr != NULL) {
            fprintf(
                stderr, "creator %zu: %s: %s\n", i, rmm_status_name(status),
                rmm_last_error_message());
            _exit(1);
        }
    }
    CHECK(rmm_torch_malloc(100, 0, NULL) == NULL);
    CHECK(rmm_stream_synchronize(the_stream) == RMM_ERR_UNSUPPORTED);
    CHECK(rmm_stream_destroy(the_stream) == RMM_ERR_UNSUPPORTED);
    rmm_stream_pool_destroy(the_streams);
    use_all_without_a_gpu();
}

static void use_cuda_before_the_fork(void)
{
    CHECK(rmm_stream_create(0, &the_stream) == RMM_OK);
    CHECK(rmm_stream_pool_create(2, 0, &the_streams) == RMM_OK);
    CHECK_CHILD(is_refused_whatever_needs_cuda);
    rmm_stream_pool_destroy(the_streams);
    CHECK(rmm_stream_destroy(the_stream) == RMM_OK);
}

TEST_CASE(a_child_is_refused_whatever_needs_cuda)
{
    assert_int_equal(in_child(use_cuda_before_the_fork), 0);
}

static void use_everything(void)
{
    for (size_t i = 0; i < NEED_CUDA; i++) {
        rmm_resource_t *mr = NULL;

        CHECK(need_cuda[i](&mr) == RMM_OK);
        rmm_resource_release(mr);
    }
    use_all_without_a_gpu();
}

static void use_host_memory_before_the_fork(void)
{
    use_all_without_a_gpu();
    CHECK_CHILD(use_everything);
    use_everything();
}

/* Who forks before the first call of CUDA has it in the child. */
TEST_CASE(a_child_forked_before_the_driver_opens_has_all)
{
    assert_int_equal(in_child(use_host_memory_before_the_fork), 0);
}

/* --- amid everything ------------------------------------------------------------------ */

/* The sanitizers' own locks do not survive such a fork. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define FORKS_AMID_THREADS
#endif

#ifdef FORKS_AMID_THREADS

static atomic_bool stop;

static void drop_message(rmm_log_level_t level, const char *message, void *arg)
{
}

static void make_and_end(make_fn make)
{
    rmm_resource_t *mr = NULL;

    CHECK(make(&mr) == RMM_OK);
    rmm_resource_release(mr);
}

static void make_host(void)
{
    make_and_end(rmm_host_resource_create);
}

static void make_all_without_a_gpu(void)
{
    use_all_without_a_gpu();
}

static void make_all_with_a_gpu(void)
{
    for (size_t i = 0; i < NEED_CUDA; i++) {
        if (need_cuda[i] != try_stream && need_cuda[i] != try_stream_pool) {
            make_and_end(need_cuda[i]);
        }
    }
}

static void make_a_pool(void)
{
    rmm_resource_t *cuda, *pool;
    void *ptr;

    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK(rmm_pool_resource_create(cuda, NULL, &pool) == RMM_OK);
    rmm_resource_release(cuda);
    CHECK(rmm_resource_alloc(pool, MIB, 0, NULL, &ptr) == RMM_OK);
    rmm_resource_dealloc(pool, ptr, MIB, 0, NULL);
    CHECK(rmm_resource_trim(pool, 0) == RMM_OK);
    rmm_resource_release(pool);
}

static void choose_log(void)
{
    rmm_log_to_stderr();
    for (int i = 0; i < 50; i++) {
        CHECK(rmm_log_to_file("/dev/null") == RMM_OK);
    }
    CHECK(rmm_log_to_callback(drop_message, NULL) == RMM_OK);
    usleep(100); /* each callback stays for good: not too many */
}

static void make_streams(void)
{
    rmm_stream_t stream;

    CHECK(rmm_stream_create(0, &stream) == RMM_OK);
    CHECK(rmm_stream_destroy(stream) == RMM_OK);
}

static void use_torch(void)
{
    void *ptr = rmm_torch_malloc(1000, 0, NULL);

    CHECK(ptr != NULL);
    rmm_torch_free(ptr, 1000, 0, NULL);
}

static void tell_time(void)
{
    struct tm local;

    for (time_t i = 0; i < 100; i++) {
        rmm__local_time(i, &local);
    }
}

/* libunwind has locks of its own. */
static void capture_stacks(void)
{
    rmm_resource_t *host, *tracking;
    void *ptr;

    CHECK(rmm_host_resource_create(&host) == RMM_OK);
    CHECK(build_tracking_stacks(host, &tracking) == RMM_OK);
    rmm_resource_release(host);
    for (int i = 0; i < 100; i++) {
        CHECK(rmm_resource_alloc(tracking, 100, 0, NULL, &ptr) == RMM_OK);
        rmm_resource_dealloc(tracking, ptr, 100, 0, NULL);
    }
    rmm_resource_release(tracking);
}

typedef void (*use_fn)(void);

/* Each with its own locks; all run at once on one thread each. */
static use_fn uses[] = {
    make_host,  make_all_without_a_gpu, make_all_with_a_gpu, make_a_pool,
    choose_log, make_streams,           use_torch,           capture_stacks,
    tell_time,
};

enum { USES = sizeof(uses) / sizeof(uses[0]) };

static void *hammer(void *argument)
{
    const use_fn *use = argument;

    while (!atomic_load(&stop)) {
        (*use)();
    }
    return NULL;
}

/* Every function that takes a lock of the whole library. */
static void touch_every_lock(void)
{
    is_shared = false;
    CHECK(rmm_log_to_file("/dev/null") == RMM_OK);
    CHECK(rmm_log_to_callback(drop_message, NULL) == RMM_OK);
    is_refused_whatever_needs_cuda();
    rmm__location_obey_resets(0);
    rmm_torch_free(&stop, 1000, 0, NULL);
    tell_time();
}

#ifdef NDEBUG
enum { FORKS = 200 };
#else
enum { FORKS = 50 };
#endif

static int fork_count(void)
{
    const char *request = getenv("RMM_TEST_FORKS");

    return request != NULL ? atoi(request) : FORKS;
}

static void fork_amid(use_fn *first, size_t count)
{
    pthread_t threads[USES];

    is_shared = true;
    CHECK(rmm_stream_create(0, &the_stream) == RMM_OK);
    CHECK(rmm_stream_pool_create(2, 0, &the_streams) == RMM_OK);
    for (size_t i = 0; i < count; i++) {
        CHECK(pthread_create(&threads[i], NULL, hammer, &first[i]) == 0);
    }
    for (int i = 0; i < fork_count(); i++) {
        CHECK_CHILD(touch_every_lock);
        alarm(PATIENCE_S); /* anew: only a hang is too long */
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < count; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

static void fork_amid_everything(void)
{
    fork_amid(uses, USES);
}

static size_t only;

static void fork_amid_one(void)
{
    fork_amid(&uses[only], 1);
}

TEST_CASE(a_child_never_waits_for_a_lock_of_its_parents_threads)
{
    for (only = 0; only < USES; only++) {
        assert_int_equal(in_child(fork_amid_one), 0);
    }
    assert_int_equal(in_child(fork_amid_everything), 0);
}
#endif

int main(void)
{
    return harness_run_cases(runtime_setup, runtime_teardown);
}
