/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources made from words: what each word builds, what a part of the free memory is, and
 * RMM_RESOURCE as the initial default. The latter in a process for each case, because the
 * initial default is kept.
 */
#include "sim/pool/pool_harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/resource_impl.h"
#include "core/host_memory.h"
#include "device/spec.h"
#include "driver/sim/control.h"
#include "harness/in_child.h"

#define GIB ((uint64_t)1 << 30)

/* --- RMM_RESOURCE: the first cases, in children, before the driver is open ----------------- */

static int in_child_with(const char *value, int (*body)(void))
{
    pid_t pid = fork_child(); /* nothing of the library was used yet */

    if (pid == 0) {
        setenv("RMM_RESOURCE", value, 1);
        exit(body());
    }
    return exit_status_of(pid);
}

#define CHECK_THAT(condition)                                                          \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
            return 1;                                                                  \
        }                                                                              \
    } while (0)

static int expect_cuda(void)
{
    rmm_resource_t *mr;

    CHECK_THAT(rmm_get_current_device_resource(&mr) == RMM_OK);
    CHECK_THAT(strcmp(rmm_resource_type(mr), "cuda") == 0);
    rmm_resource_release(mr);
    return 0;
}

TEST_CASE(an_empty_variable_counts_as_unset)
{
    assert_int_equal(in_child_with("", expect_cuda), 0);
    assert_int_equal(in_child_with("cuda", expect_cuda), 0);
}

static int expect_pools(void)
{
    for (int device = 1; device >= 0; device--) {
        rmm_resource_t *mr, *again;

        CHECK_THAT(rmm_sim_allocated_bytes(device) == 0);
        CHECK_THAT(rmm_get_per_device_resource(device, &mr) == RMM_OK);
        CHECK_THAT(strcmp(rmm_resource_type(mr), "pool") == 0);
        CHECK_THAT(mr->device == device);
        CHECK_THAT(rmm_sim_allocated_bytes(device) > 40 * GIB - MIB);
        CHECK_THAT(rmm_reset_per_device_resource(device) == RMM_OK);
        CHECK_THAT(rmm_get_per_device_resource(device, &again) == RMM_OK);
        CHECK_THAT(again == mr); /* kept, not made twice */
        rmm_resource_release(mr);
        rmm_resource_release(again);
    }
    return 0;
}

TEST_CASE(each_device_gets_its_own_at_its_first_use)
{
    assert_int_equal(in_child_with("pool:50%", expect_pools), 0);
}

static int expect_refusal_each_time(void)
{
    rmm_resource_t *mr = NULL;
    rmm_resource_t *pool = NULL;

    for (int i = 0; i < 3; i++) {
        CHECK_THAT(rmm_get_current_device_resource(&mr) == RMM_ERR_INVALID_ARGUMENT);
        CHECK_THAT(
            strstr(rmm_last_error_message(), "RMM_RESOURCE is 'pol:50%' (") != NULL);
        CHECK_THAT(
            strstr(rmm_last_error_message(), "no resource is named 'pol'") != NULL);
        CHECK_THAT(strstr(rmm_last_error_message(), "examples: pool:50%") != NULL);
    }
    CHECK_THAT(rmm_resource_create_from_spec("pool", &pool) == RMM_OK);
    CHECK_THAT(rmm_set_current_device_resource(pool, &mr) == RMM_ERR_INVALID_ARGUMENT);
    CHECK_THAT(mr == NULL);
    CHECK_THAT(rmm_set_current_device_resource(pool, NULL) == RMM_OK); /* not asked */
    CHECK_THAT(rmm_get_current_device_resource(&mr) == RMM_OK);
    CHECK_THAT(mr == pool);
    rmm_resource_release(mr);
    rmm_resource_release(pool);
    return 0;
}

TEST_CASE(a_malformed_value_is_refused_at_each_use)
{
    assert_int_equal(in_child_with("pol:50%", expect_refusal_each_time), 0);
}

static int expect_out_of_memory_and_recovery(void)
{
    rmm_resource_t *mr = NULL;

    CHECK_THAT(rmm_get_current_device_resource(&mr) == RMM_ERR_OUT_OF_MEMORY);
    CHECK_THAT(strstr(rmm_last_error_message(), "RMM_RESOURCE is") != NULL);
    CHECK_THAT(mr == NULL && rmm_sim_allocated_bytes(0) == 0);
    setenv("RMM_RESOURCE", "pool:1GiB", 1);
    CHECK_THAT(rmm_get_current_device_resource(&mr) == RMM_OK);
    rmm_resource_release(mr);
    return 0;
}

TEST_CASE(too_much_is_out_of_memory)
{
    assert_int_equal(
        in_child_with("pool:500TiB", expect_out_of_memory_and_recovery), 0);
}

static int set_before_any_get(void)
{
    rmm_resource_t *cuda;

    CHECK_THAT(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK_THAT(rmm_set_current_device_resource(cuda, NULL) == RMM_OK);
    rmm_resource_release(cuda);
    CHECK_THAT(rmm_sim_allocated_bytes(0) == 0);
    return 0;
}

TEST_CASE(a_program_that_sets_its_own_pays_for_no_other)
{
    assert_int_equal(in_child_with("pool:50%", set_before_any_get), 0);
}

/* The first use with one failure in it; a second use must then work. */
enum { STRUCK = 10, MAX_ROUNDS = 500 };

static uint64_t nth_call;
static bool fail_host_memory;

static int use_first_with_a_failure(void)
{
    char plan[32];
    rmm_resource_t *mr = NULL;
    rmm_status_t status;
    bool struck;

    snprintf(plan, sizeof(plan), "any:%lu", (unsigned long)nth_call);
    CHECK_THAT(rmm_sim_active());
    if (fail_host_memory) {
        rmm__host_memory_fail(nth_call);
    } else {
        CHECK_THAT(rmm_sim_fail(plan));
    }
    status = rmm_get_current_device_resource(&mr);
    struck =
        fail_host_memory ? rmm__host_memory_fail_struck() : rmm__sim_fault_has_struck();
    rmm__host_memory_fail(0);
    CHECK_THAT(rmm_sim_fail(NULL));
    CHECK_THAT((status == RMM_OK) == (mr != NULL));
    CHECK_THAT(status == RMM_OK || rmm_last_error_message()[0] != '\0');
    rmm_resource_release(mr);
    CHECK_THAT(rmm_get_current_device_resource(&mr) == RMM_OK);
    CHECK_THAT(strcmp(rmm_resource_type(mr), "statistics") == 0);
    rmm_resource_release(mr);
    CHECK_THAT(rmm_sim_violations() == 0);
    return struck ? STRUCK : 0;
}

static void expect_recovery_from_each_failure(void)
{
    for (nth_call = 1; nth_call < MAX_ROUNDS; nth_call++) {
        int ended = in_child_with("statistics+pool:1MiB", use_first_with_a_failure);

        if (ended == 0) {
            assert_true(nth_call > 5);
            return;
        }
        assert_int_equal(ended, STRUCK);
    }
    fail_msg("the first use never got through");
}

TEST_CASE(a_first_use_that_fails_can_be_tried_again)
{
    fail_host_memory = false;
    expect_recovery_from_each_failure();
    fail_host_memory = true;
    expect_recovery_from_each_failure();
}

static unsigned refused_in_callback;

static void ask_for_the_default(rmm_log_level_t level, const char *message, void *arg)
{
    rmm_resource_t *mr;

    refused_in_callback += rmm_get_current_device_resource(&mr) == RMM_ERR_UNSUPPORTED;
}

static int ask_while_it_is_made(void)
{
    rmm_resource_t *mr;

    CHECK_THAT(rmm_log_to_callback(ask_for_the_default, NULL) == RMM_OK);
    CHECK_THAT(rmm_log_set_level(RMM_LEVEL_DEBUG) == RMM_OK);
    setenv("RMM_PUBLISH", "1", 1); /* the first resource warns that it cannot */
    setenv("RMM_RUNTIME_DIR", "/proc/nowhere", 1);
    CHECK_THAT(rmm_get_current_device_resource(&mr) == RMM_OK);
    rmm_log_to_stderr();
    rmm_resource_release(mr);
    CHECK_THAT(refused_in_callback > 0);
    return 0;
}

TEST_CASE(a_log_callback_that_asks_for_it_does_not_hang)
{
    assert_int_equal(in_child_with("pool", ask_while_it_is_made), 0);
}

/* --- rmm_resource_create_from_spec() --------------------------------------------------- */

static rmm_resource_t *make(const char *spec)
{
    rmm_resource_t *mr = NULL;

    assert_ok(rmm_resource_create_from_spec(spec, &mr));
    assert_non_null(mr);
    return mr;
}

typedef struct word {
    const char *spec, *type, *upstream;
} word_t;

static const word_t words[] = {
#define PLAIN(word) {#word, #word, NULL},
#include "device/spec_kinds.def"
    {"auto", "pool", NULL},
    {"auto:2MiB:1GiB:no_peer_access", "pool", NULL},
    {"pool", "pool", "cuda"},
    {"pool_virtual", "pool", NULL},
    {"pool_virtual:2MiB:1GiB", "pool", NULL},
    {"pool_managed", "pool", "managed"},
    {"pool_pinned", "pool", "pinned"},
    {"binning", "binning", "pool"},
    {"fixed_size", "fixed_size", "cuda"},
    {"arena", "arena", "cuda"},
    {"arena:4MiB", "arena", "cuda"},
    {"statistics+arena:1GiB", "statistics", "arena"},
    {"async", "async", NULL},
    {"async:1MiB", "async", NULL},
    {"async:wait", "async", NULL},
    {"async_pinned", "async_pinned", NULL},
    {"async_pinned:1MiB:wait:numa:no_peer_access", "async_pinned", NULL},
    {"async_pinned:numa=1", "async_pinned", NULL},
    {"async:1MiB:wait", "async", NULL},
    {"async_managed:wait", "async_managed", NULL},
    {"sam_headroom:1GiB", "sam_headroom", NULL},
    {"aligned:4KiB+cuda", "aligned", "cuda"},
    {"limiting:1GiB+pool", "limiting", "pool"},
    {"logging+cuda", "logging", "cuda"},
    {"logging:auto_flush+cuda", "logging", "cuda"},
    {"logging:500ms+cuda", "logging", "cuda"},
    {"logging:pool_size:500ms+pool", "logging", "pool"},
    {"prefetch+managed", "prefetch", "managed"},
    {"retry+async", "retry", "async"},
    {"retry:100ms+pool", "retry", "pool"},
    {"wait+pool", "wait", "pool"},
    {"wait:1500ms+pool:0:50%", "wait", "pool"},
    {"pool/managed", "fallback", "pool"},
    {"pool:0:80%/managed/pinned", "fallback", "pool"},
    {"pool_virtual:0:4MiB:no_peer_access/async:wait", "fallback", "pool"},
    {"statistics+wait+pool/managed", "statistics", "wait"},
    {"statistics+async", "statistics", "async"},
    {"thread_safe+cuda", "thread_safe", "cuda"},
    {"tracking+cuda", "tracking", "cuda"},
    {"statistics+limiting:50%+pool:1MiB", "statistics", "limiting"},
};

enum { WORD_COUNT = sizeof(words) / sizeof(words[0]) };

static void expect_built(const word_t *word)
{
    rmm_resource_t *mr = make(word->spec);
    rmm_resource_t *upstream = rmm_resource_upstream(mr);

    assert_ok(rmm_resource_check_spec(word->spec));
    assert_string_equal(rmm_resource_type(mr), word->type);
    assert_int_equal(mr->device, 0);
    if (word->upstream == NULL) {
        assert_null(upstream);
    } else {
        assert_string_equal(rmm_resource_type(upstream), word->upstream);
    }
    give(mr, take(mr, 1000, NULL), 1000, NULL);
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(each_word_builds_what_it_says)
{
    for (size_t i = 0; i < WORD_COUNT; i++) {
        expect_built(&words[i]);
    }
    assert_int_equal(rmm_sim_violations(), 0);
}

static bool has_row(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (strncmp(words[i].spec, name, length) == 0 &&
            strchr(":+", words[i].spec[length]) != NULL) {
            return true;
        }
    }
    return false;
}

/* A type of its own name; one that is called otherwise, or an adaptor, needs a row of words[]. */
TEST_CASE(a_word_without_a_row_builds_the_type_of_its_name)
{
    const rmm_spec_kind_t *kind;

    for (size_t i = 0; (kind = rmm__spec_kind_at(i)) != NULL; i++) {
        if (!has_row(kind->name)) {
            rmm_resource_t *mr = make(kind->name);

            assert_string_equal(rmm_resource_type(mr), kind->name);
            rmm_resource_release(mr);
        }
    }
}

TEST_CASE(sizes_are_initial_and_maximum)
{
    rmm_resource_t *mr = make("pool:1MiB:3MiB");
    uint64_t headroom_bytes;
    void *ptr;

    assert_int_equal(stats_of(mr).reserved_bytes, MIB);
    assert_int_equal(
        rmm_resource_alloc(mr, 4 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    give(mr, take(mr, 2 * MIB, NULL), 2 * MIB, NULL);
    rmm_resource_release(mr);

    mr = make("pool:0:3MiB");
    assert_int_equal(stats_of(mr).reserved_bytes, 0);
    assert_int_equal(
        rmm_resource_alloc(mr, 4 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    rmm_resource_release(mr);

    mr = make("sam_headroom:3MiB");
    assert_ok(rmm_sam_headroom_get_headroom(mr, &headroom_bytes));
    assert_int_equal(headroom_bytes, 3 * MIB);
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(percent_is_of_what_is_free_now)
{
    uint64_t free_bytes, total_bytes;
    rmm_resource_t *cuda = make_cuda();
    void *ptr = take(cuda, 10 * GIB, NULL);
    rmm_resource_t *mr;

    assert_cuda(sim_driver()->memory_info(&free_bytes, &total_bytes));
    assert_true(free_bytes <= total_bytes - 10 * GIB);
    mr = make("pool:50%");
    assert_true(stats_of(mr).reserved_bytes <= free_bytes / 2);
    assert_true(stats_of(mr).reserved_bytes >= free_bytes / 2 - KIB);
    rmm_resource_release(mr);
    give(cuda, ptr, 10 * GIB, NULL);
    rmm_resource_release(cuda);
}

TEST_CASE(a_spec_sets_the_block_size)
{
    rmm_resource_t *mr = make("fixed_size:4KiB");
    void *ptr;

    give(mr, take(mr, 4 * KIB, NULL), 4 * KIB, NULL);
    assert_int_equal(
        rmm_resource_alloc(mr, 4 * KIB + 1, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    rmm_resource_release(mr);
}

TEST_CASE(a_part_of_the_free_memory_is_whole_units)
{
    rmm_resource_t *cuda = make("cuda");
    void *block = take(cuda, 512, NULL);
    char spec[64];

    for (int percent = 1; percent <= 100; percent++) {
        rmm_resource_t *mr;
        uint64_t limit;

        snprintf(spec, sizeof(spec), "limiting:%d%%+cuda", percent);
        mr = make(spec);
        assert_ok(rmm_limiting_get_limit(mr, &limit));
        assert_int_equal(limit % 256, 0);
        rmm_resource_release(mr);
    }
    give(cuda, block, 512, NULL);
    rmm_resource_release(cuda);
}

TEST_CASE(an_adaptor_gets_its_sizes)
{
    rmm_resource_t *mr = make("limiting:1MiB+aligned:64KiB+cuda");
    void *ptr = take(mr, 512 * KIB, NULL);
    void *more;

    assert_int_equal((uintptr_t)ptr % (64 * KIB), 0);
    assert_int_equal(
        rmm_resource_alloc(mr, 513 * KIB, 0, NULL, &more), RMM_ERR_OUT_OF_MEMORY);
    give(mr, ptr, 512 * KIB, NULL);
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* Chains of alternates, below the adaptors. */
TEST_CASE(what_the_first_refuses_comes_from_the_next)
{
    rmm_resource_t *mr = make("statistics+fixed_size:1MiB/pool:0:4MiB/managed");
    rmm_resource_t *first = rmm_resource_upstream(mr);
    rmm_resource_t *rest = rmm_fallback_get_alternate(first);
    rmm_resource_t *last = rmm_fallback_get_alternate(rest);
    void *small = take(mr, MIB, NULL), *middle = take(mr, 2 * MIB, NULL);
    void *large = take(mr, 8 * MIB, NULL);

    assert_string_equal(rmm_resource_type(rest), "fallback");
    assert_string_equal(rmm_resource_type(last), "managed");
    assert_int_equal(stats_of(rmm_resource_upstream(first)).current_bytes, MIB);
    assert_int_equal(stats_of(rmm_resource_upstream(rest)).current_bytes, 2 * MIB);
    assert_int_equal(stats_of(last).current_bytes, 8 * MIB);
    give(mr, large, 8 * MIB, NULL);
    give(mr, middle, 2 * MIB, NULL);
    give(mr, small, MIB, NULL);
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

static void expect_reason(const char *spec, const char *reason)
{
    assert_int_equal(rmm_resource_check_spec(spec), RMM_ERR_INVALID_ARGUMENT);
    if (strstr(rmm_last_error_message(), reason) == NULL) {
        fail_msg("'%s': %s", spec, rmm_last_error_message());
    }
}

TEST_CASE(a_wrong_alternate_or_time_is_named)
{
    expect_reason("pool/", "a name is missing");
    expect_reason("/pool", "a name is missing");
    expect_reason("pool//managed", "a name is missing");
    expect_reason("pool/statistics+managed", "'statistics' is an adaptor");
    expect_reason("statistics/pool", "'statistics' is an adaptor");
    expect_reason("pool/statistics", "as in statistics+pool/managed");
    expect_reason("pool/managed+pinned", "'managed' is not an adaptor");
    expect_reason("retry:0ms+pool", "a time of at least 1ms");
    expect_reason("wait:auto_flush+pool", "'wait' has no option 'auto_flush'");
    expect_reason("wait:1MiB+pool", "a time, such as 500ms");
    expect_reason("cuda/cuda/cuda/cuda/cuda/cuda/cuda/cuda/cuda", "more than 8 parts");
}

TEST_CASE(a_wrong_spec_is_refused_in_one_line)
{
    static const char *const wrong[] = {
        "",          "poool",     "statistics", "limiting+pool", "pool:x",
        "pool+cuda", "cuda:1MiB", "pool:1:2:3", "pool:\n"};
    rmm_resource_t *mark = (void *)&mark;
    rmm_resource_t *mr = mark;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(
            rmm_resource_create_from_spec(wrong[i], &mr), RMM_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(rmm_last_error_message(), "the spec is '"));
        assert_non_null(strstr(rmm_last_error_message(), "pool:50%"));
        assert_null(strchr(rmm_last_error_message(), '\n'));
    }
    assert_int_equal(rmm_resource_check_spec(NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_resource_create_from_spec(NULL, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_resource_create_from_spec("cuda", NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_ptr_equal(mr, mark);
}

TEST_CASE(what_a_creator_refuses_names_the_spec)
{
    rmm_resource_t *mr = NULL;

    assert_int_equal(
        rmm_resource_create_from_spec("pool:2MiB:1MiB", &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(rmm_last_error_message(), "the spec is 'pool:2MiB:1MiB': "));
    assert_int_equal(
        rmm_resource_create_from_spec("pool:500TiB", &mr), RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rmm_last_error_message(), "the spec is 'pool:500TiB': "));
    assert_null(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

static void expect_nothing_left(const char *spec)
{
    for (uint64_t nth = 1;; nth++) {
        rmm_resource_t *mr = NULL;
        rmm_status_t status;
        bool struck;

        rmm__host_memory_fail(nth);
        status = rmm_resource_create_from_spec(spec, &mr);
        struck = rmm__host_memory_fail_struck();
        rmm__host_memory_fail(0);
        assert_int_equal(status == RMM_OK, mr != NULL);
        rmm_resource_release(mr);
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
        if (!struck) {
            assert_true(nth > 3);
            return;
        }
    }
}

TEST_CASE(what_fails_on_the_way_leaves_nothing)
{
    expect_nothing_left("binning:1MiB");
    expect_nothing_left("wait+retry+pool:1MiB/managed/pool_pinned:1MiB");
}

int main(void)
{
    setenv("RMM_LOG_FILE", "/dev/null", 1);
    return harness_run_cases(NULL, NULL);
}
