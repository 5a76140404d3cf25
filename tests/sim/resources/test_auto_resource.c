/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resource `auto`: what it chooses on devices and in processes that differ, that it says so,
 * and who gets it without asking. Each case in a process of its own, because the variables are
 * read once and the initial default is kept.
 */
#include "sim/pool/pool_harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/resource_impl.h"
#include "driver/sim/control.h"
#include "harness/in_child.h"

#define GIB ((uint64_t)1 << 30)

#define CHECK_THAT(condition)                                                          \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(                                                                   \
                stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition,            \
                rmm_last_error_message());                                             \
            return 1;                                                                  \
        }                                                                              \
    } while (0)
#define CHECK(call)                                                                    \
    do {                                                                               \
        int failed = (call);                                                           \
        if (failed != 0) {                                                             \
            fprintf(stderr, "%s:%d: in %s\n", __FILE__, __LINE__, #call);              \
            return failed;                                                             \
        }                                                                              \
    } while (0)

static int with(const char *variable, const char *value, int (*body)(void))
{
    pid_t pid = fork_child(); /* nothing of the library was used yet */

    if (pid == 0) {
        setenv(variable, value, 1);
        exit(body());
    }
    return exit_status_of(pid);
}

static unsigned reasons; /* messages that say why memory is not mapped */
static char reason[512];

static void note_reason(rmm_log_level_t level, const char *message, void *arg)
{
    (void)arg;
    if (strstr(message, "auto on device") != NULL) {
        reasons += level == RMM_LEVEL_INFO ? 1 : 100;
        snprintf(reason, sizeof(reason), "%s", message);
    }
}

static int listen_for_reasons(void)
{
    CHECK_THAT(rmm_log_to_callback(note_reason, NULL) == RMM_OK);
    CHECK_THAT(rmm_log_set_level(RMM_LEVEL_INFO) == RMM_OK);
    return 0;
}

/* The resource serves a request, and is what its name says. */
static int check_is(rmm_resource_t *mr, bool is_mapped)
{
    void *ptr;

    CHECK_THAT(strcmp(rmm_resource_type(mr), "pool") == 0);
    CHECK_THAT(strcmp(rmm_resource_name(mr), is_mapped ? "pool_virtual" : "pool") == 0);
    CHECK_THAT((rmm_resource_upstream(mr) == NULL) == is_mapped);
    CHECK_THAT(rmm_resource_alloc(mr, 5 * MIB, 0, NULL, &ptr) == RMM_OK);
    rmm_resource_dealloc(mr, ptr, 5 * MIB, 0, NULL);
    return 0;
}

static int expect_kind(const char *spec, bool is_mapped)
{
    rmm_resource_t *mr;

    CHECK(listen_for_reasons());
    CHECK_THAT(rmm_resource_create_from_spec(spec, &mr) == RMM_OK);
    CHECK(check_is(mr, is_mapped));
    CHECK_THAT(reasons == (is_mapped ? 0 : 1));
    rmm_resource_release(mr);
    CHECK_THAT(rmm_sim_allocated_bytes(0) == 0);
    CHECK_THAT(rmm_sim_violations() == 0);
    return 0;
}

/* --- where memory can be mapped --------------------------------------------------------- */

static int maps_memory(void)
{
    rmm_resource_t *mr;
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;

    CHECK(expect_kind("auto", true));
    CHECK_THAT(rmm_auto_resource_create(NULL, &mr) == RMM_OK);
    CHECK_THAT(
        stats_of(mr).reserved_bytes == 2 * MIB); /* the proof, and the first memory */
    rmm_resource_release(mr);
    options.name = "mine";
    options.initial_bytes = 8 * MIB;
    options.maximum_bytes = 16 * MIB;
    options.flags = RMM_POOL_VIRTUAL | RMM_POOL_NO_PEER_ACCESS;
    CHECK_THAT(rmm_auto_resource_create(&options, &mr) == RMM_OK);
    CHECK_THAT(strcmp(rmm_resource_name(mr), "mine") == 0);
    CHECK_THAT(stats_of(mr).reserved_bytes == 8 * MIB);
    CHECK_THAT(stats_of(mr).maximum_bytes == 16 * MIB);
    rmm_resource_release(mr);
    return 0;
}

TEST_CASE(maps_memory_where_the_device_can)
{
    assert_int_equal(in_child(maps_memory), 0);
}

static int takes_the_sizes_of_a_pool(void)
{
    rmm_resource_t *mr;

    CHECK_THAT(rmm_resource_create_from_spec("auto:50%", &mr) == RMM_OK);
    CHECK_THAT(stats_of(mr).reserved_bytes > 39 * GIB);
    CHECK_THAT(stats_of(mr).reserved_bytes <= 40 * GIB);
    rmm_resource_release(mr);
    CHECK_THAT(
        rmm_resource_create_from_spec(
            "statistics+auto:1MiB:64MiB:no_peer_access", &mr) == RMM_OK);
    CHECK_THAT(stats_of(rmm_resource_upstream(mr)).maximum_bytes == 64 * MIB);
    rmm_resource_release(mr);
    CHECK_THAT(
        rmm_resource_create_from_spec("auto:64MiB:1MiB", &mr) ==
        RMM_ERR_INVALID_ARGUMENT);
    CHECK_THAT(
        rmm_resource_create_from_spec("auto:500GiB", &mr) == RMM_ERR_OUT_OF_MEMORY);
    CHECK_THAT(rmm_sim_allocated_bytes(0) == 0);
    return 0;
}

TEST_CASE(takes_the_sizes_and_options_of_a_pool)
{
    assert_int_equal(in_child(takes_the_sizes_of_a_pool), 0);
}

static int refuses_what_it_cannot_read(void)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;

    CHECK_THAT(rmm_auto_resource_create(NULL, NULL) == RMM_ERR_INVALID_ARGUMENT);
    options.flags = UINT64_C(1) << 60;
    CHECK_THAT(rmm_auto_resource_create(&options, &mr) == RMM_ERR_INVALID_ARGUMENT);
    options.flags = 0;
    options.struct_size = 0;
    CHECK_THAT(rmm_auto_resource_create(&options, &mr) == RMM_ERR_INVALID_ARGUMENT);
    CHECK_THAT(mr == NULL);
    return 0;
}

TEST_CASE(refuses_options_that_it_cannot_read)
{
    assert_int_equal(in_child(refuses_what_it_cannot_read), 0);
}

/* --- where it cannot be mapped ------------------------------------------------------------ */

static int takes_chunks(void)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;

    CHECK(expect_kind("auto:0:64MiB:no_peer_access", false));
    CHECK_THAT(strstr(reason, "cannot map virtual memory") != NULL);
    options.flags = RMM_POOL_PEER_ACCESS;
    CHECK_THAT(rmm_auto_resource_create(&options, &mr) == RMM_ERR_UNSUPPORTED);
    CHECK_THAT(mr == NULL && reasons == 1);
    CHECK_THAT(rmm_auto_resource_create(NULL, &mr) == RMM_OK);
    CHECK_THAT(stats_of(mr).reserved_bytes == 0);
    rmm_resource_release(mr);
    return 0;
}

TEST_CASE(takes_chunks_on_a_device_that_cannot_map)
{
    assert_int_equal(with("RMM_SIM_ATTRIBUTES", "virtual_memory=0", takes_chunks), 0);
}

static int takes_chunks_for_strangers(void)
{
    rmm_resource_t *mr;

    CHECK(expect_kind("auto", false));
    CHECK_THAT(strstr(reason, "device 1, which this process sees") != NULL);
    reasons = 0;
    CHECK(expect_kind("auto:no_peer_access", true));
    CHECK_THAT(rmm_sim_fail("peer_can_access:1"));
    CHECK_THAT(rmm_auto_resource_create(NULL, &mr) == RMM_OK);
    CHECK(check_is(mr, false));
    rmm_resource_release(mr);
    return 0;
}

static int maps_memory_of_the_only_device(void)
{
    setenv("RMM_SIM_DEVICES", "1", 1);
    return expect_kind("auto", true);
}

TEST_CASE(takes_chunks_if_a_device_in_sight_is_no_peer)
{
    assert_int_equal(
        with("RMM_SIM_ATTRIBUTES", "peers=0", takes_chunks_for_strangers), 0);
    assert_int_equal(
        with("RMM_SIM_ATTRIBUTES", "peers=0", maps_memory_of_the_only_device), 0);
}

/* As a virtual GPU that has the attribute, and refuses the calls. */
static int takes_chunks_where_the_driver_refuses(void)
{
    CHECK_THAT(rmm_sim_active());
    CHECK_THAT(rmm_sim_fail("physical_create:1:801"));
    CHECK(expect_kind("auto", false));
    reasons = 0;
    CHECK_THAT(rmm_sim_fail("address_map:1:801"));
    CHECK(expect_kind("auto", false));
    reasons = 0;
    CHECK_THAT(rmm_sim_fail("virtual_granularity:1:801"));
    return expect_kind("auto", false);
}

TEST_CASE(takes_chunks_where_the_driver_refuses_a_piece)
{
    assert_int_equal(in_child(takes_chunks_where_the_driver_refuses), 0);
}

static int takes_chunks_without_addresses(void)
{
    char plan[32 * 24] = "";

    for (int i = 1; i <= 30; i++) {
        snprintf(
            plan + strlen(plan), sizeof(plan) - strlen(plan), "%saddress_reserve:%d",
            i > 1 ? "," : "", i);
    }
    CHECK_THAT(rmm_sim_active());
    CHECK_THAT(rmm_sim_fail(plan));
    CHECK(expect_kind("auto", false));
    return strstr(reason, "reserving addresses") != NULL ? 0 : 1;
}

TEST_CASE(takes_chunks_where_addresses_are_refused)
{
    assert_int_equal(in_child(takes_chunks_without_addresses), 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* What `ulimit -v` leaves is less than the device's memory. */
static int takes_chunks_under_ulimit(void)
{
    unsigned long pages;
    FILE *file;
    struct rlimit limit;
    rmm_resource_t *cuda;
    void *ptr;

    CHECK_THAT(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK_THAT(
        rmm_resource_alloc(cuda, 1, 0, NULL, &ptr) == RMM_OK); /* opens the device */
    rmm_resource_dealloc(cuda, ptr, 1, 0, NULL);
    rmm_resource_release(cuda);
    file = fopen("/proc/self/statm", "r");
    CHECK_THAT(file != NULL && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    limit.rlim_cur = limit.rlim_max =
        pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)GIB;
    CHECK_THAT(setrlimit(RLIMIT_AS, &limit) == 0);
    return expect_kind("auto", false);
}

TEST_CASE(takes_chunks_under_ulimit_v)
{
    assert_int_equal(in_child(takes_chunks_under_ulimit), 0);
}
#endif

/* --- a full device, failures, captures ------------------------------------------------------ */

static int waits_for_memory(void)
{
    rmm_resource_t *cuda, *mr;
    void *all, *ptr;

    CHECK_THAT(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK_THAT(rmm_resource_alloc(cuda, 16 * MIB, 0, NULL, &all) == RMM_OK);
    CHECK(listen_for_reasons());
    CHECK_THAT(rmm_auto_resource_create(NULL, &mr) == RMM_OK);
    CHECK_THAT(stats_of(mr).reserved_bytes == 0 && reasons == 0);
    CHECK_THAT(rmm_resource_alloc(mr, 1000, 0, NULL, &ptr) == RMM_ERR_OUT_OF_MEMORY);
    rmm_resource_dealloc(cuda, all, 16 * MIB, 0, NULL);
    CHECK(check_is(mr, true));
    rmm_resource_release(mr);
    rmm_resource_release(cuda);
    CHECK_THAT(rmm_sim_allocated_bytes(0) == 0);
    return 0;
}

TEST_CASE(a_full_device_does_not_change_the_choice)
{
    assert_int_equal(with("RMM_SIM_MEMORY", "16MiB", waits_for_memory), 0);
}

enum { STRUCK = 10, MAX_ROUNDS = 200 };

static int create_with_a_failure(uint64_t nth)
{
    char plan[32];
    rmm_resource_t *mr = NULL;
    rmm_status_t status;
    bool struck;

    snprintf(plan, sizeof(plan), "any:%llu", (unsigned long long)nth);
    CHECK_THAT(rmm_sim_fail(plan));
    status = rmm_auto_resource_create(NULL, &mr);
    struck = rmm__sim_fault_has_struck();
    CHECK_THAT(rmm_sim_fail(NULL));
    CHECK_THAT((status == RMM_OK) == (mr != NULL));
    if (mr != NULL) {
        CHECK(check_is(mr, rmm_resource_upstream(mr) == NULL));
    }
    rmm_resource_release(mr);
    CHECK_THAT(rmm_sim_violations() == 0);
    return struck ? STRUCK : 0;
}

static int survives_each_failure(void)
{
    CHECK_THAT(rmm_sim_active());
    for (uint64_t nth = 1; nth < MAX_ROUNDS; nth++) {
        int ended = create_with_a_failure(nth);

        if (ended != STRUCK) {
            return nth > 5 ? ended : 1;
        }
    }
    return 1;
}

TEST_CASE(any_call_of_the_driver_may_fail)
{
    assert_int_equal(in_child(survives_each_failure), 0);
}

static int is_made_in_a_capture(void)
{
    rmm_stream_t stream;
    rmm_sim_graph_t graph;
    rmm_resource_t *mr;
    void *ptr;

    CHECK_THAT(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) == RMM_OK);
    CHECK_THAT(rmm_sim_begin_capture(stream, 0) == 0);
    CHECK_THAT(rmm_auto_resource_create(NULL, &mr) == RMM_OK);
    CHECK_THAT(rmm_resource_alloc(mr, 1000, 0, stream, &ptr) == RMM_OK);
    rmm_resource_dealloc(mr, ptr, 1000, 0, stream);
    CHECK_THAT(rmm_sim_end_capture(stream, &graph) == 0);
    CHECK_THAT(rmm_sim_graph_destroy(graph) == 0);
    CHECK_THAT(rmm_stream_destroy(stream) == RMM_OK);
    CHECK_THAT(strcmp(rmm_resource_name(mr), "pool_virtual") == 0);
    rmm_resource_release(mr);
    return rmm_sim_violations() == 0 ? 0 : 1;
}

TEST_CASE(is_made_in_a_capture_without_ruining_it)
{
    assert_int_equal(in_child(is_made_in_a_capture), 0);
}

/* --- the initial default -------------------------------------------------------------------- */

static int defaults_are(const char *name)
{
    for (int device = 1; device >= 0; device--) {
        rmm_resource_t *mr;

        CHECK_THAT(rmm_get_per_device_resource(device, &mr) == RMM_OK);
        CHECK_THAT(strcmp(rmm_resource_name(mr), name) == 0);
        CHECK_THAT(mr->device == device);
        rmm_resource_release(mr);
    }
    return 0;
}

static int defaults_are_virtual(void)
{
    return defaults_are("pool_virtual");
}

static int prefer_auto(void)
{
    rmm_default_resource_prefer_auto();
    return defaults_are("pool_virtual");
}

static int prefer_auto_too_late(void)
{
    CHECK(defaults_are("cuda"));
    rmm_default_resource_prefer_auto();
    return defaults_are("cuda");
}

static int prefer_auto_and_ask_for_cuda(void)
{
    rmm_default_resource_prefer_auto();
    return defaults_are("cuda");
}

static int torch_takes_it(void)
{
    void *ptr = rmm_torch_malloc(1000, 1, NULL);

    CHECK_THAT(ptr != NULL);
    rmm_torch_free(ptr, 1000, 1, NULL);
    return defaults_are("pool_virtual");
}

static int is_cuda_as_ever(void)
{
    return defaults_are("cuda");
}

TEST_CASE(is_the_default_of_each_device_where_asked_for)
{
    assert_int_equal(with("RMM_RESOURCE", "auto", defaults_are_virtual), 0);
    assert_int_equal(in_child(is_cuda_as_ever), 0);
    assert_int_equal(in_child(prefer_auto), 0);
    assert_int_equal(in_child(prefer_auto_too_late), 0);
    assert_int_equal(in_child(torch_takes_it), 0);
    assert_int_equal(with("RMM_RESOURCE", "cuda", prefer_auto_and_ask_for_cuda), 0);
    assert_int_equal(with("RMM_RESOURCE", "cuda", is_cuda_as_ever), 0);
}

static int refused_after_fork(void)
{
    rmm_resource_t *mr = NULL;

    return rmm_auto_resource_create(NULL, &mr) == RMM_ERR_UNSUPPORTED && mr == NULL ? 0
                                                                                    : 1;
}

static int fork_after_use(void)
{
    CHECK(expect_kind("auto", true));
    return in_child(refused_after_fork);
}

TEST_CASE(is_refused_in_a_forked_child)
{
    assert_int_equal(in_child(fork_after_use), 0);
}
