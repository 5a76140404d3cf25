/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a C++ program that are given to the C interface, and throw although its headers
 * forbid it: the exception comes out at the caller, and the library goes on: no lock, turn,
 * promise or cancellation state stays behind. (Through rmm.hpp no exception reaches C.)
 */
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <rmm/rmm.h>

namespace
{

struct thrown {
};

/* Of these calls the n-th throws; 0: none does. */
int countdown;

void call()
{
    if (countdown != 0 && --countdown == 0) {
        throw thrown{};
    }
}

rmm_resource_t *cuda;

rmm_status_t
take(std::size_t bytes, std::size_t align, rmm_stream_t stream, void *, void **out)
{
    call();
    return rmm_resource_alloc(cuda, bytes, align, stream, out);
}

void give(void *ptr, std::size_t bytes, std::size_t align, rmm_stream_t stream, void *)
{
    rmm_resource_dealloc(cuda, ptr, bytes, align, stream);
    call();
}

bool try_again(std::size_t, void *)
{
    call();
    return false;
}

void sink(const char *, std::size_t, void *)
{
    call();
}

void on_log(rmm_log_level_t, const char *, void *)
{
    call();
}

bool cancellable()
{
    int before;

    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    return before == PTHREAD_CANCEL_ENABLE;
}

/* One resource over another, which is released; all arguments else NULL. */
template <class Create> rmm_resource_t *over(rmm_resource_t *upstream, Create create)
{
    rmm_resource_t *made = nullptr;
    rmm_status_t status = create(upstream, &made);

    rmm_resource_release(upstream);
    CHECK(status == RMM_OK);
    return made;
}

rmm_resource_t *custom()
{
    rmm_custom_resource_ops_t ops = RMM_CUSTOM_RESOURCE_OPS_INIT;
    rmm_resource_t *made = nullptr;

    ops.alloc = take;
    ops.dealloc = give;
    CHECK(rmm_custom_resource_create(&ops, nullptr, &made) == RMM_OK);
    return made;
}

rmm_status_t make_pool(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;

    options.maximum_bytes = std::size_t(64) << 20;
    return rmm_pool_resource_create(upstream, &options, out);
}

rmm_status_t make_fixed_size(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;

    options.block_bytes = std::size_t(1) << 20;
    return rmm_fixed_size_resource_create(upstream, &options, out);
}

rmm_status_t make_arena(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;

    options.arena_bytes = std::size_t(64) << 20;
    return rmm_arena_resource_create(upstream, &options, out);
}

rmm_status_t make_limiting(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;

    options.limit_bytes = std::size_t(32) << 20;
    return rmm_limiting_adaptor_create(upstream, &options, out);
}

rmm_status_t make_thread_safe(rmm_resource_t *upstream, rmm_resource_t **out)
{
    return rmm_thread_safe_adaptor_create(upstream, nullptr, out);
}

rmm_status_t make_fallback(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_fallback_options_t options = RMM_FALLBACK_OPTIONS_INIT;

    options.alternate = upstream;
    return rmm_fallback_adaptor_create(upstream, &options, out);
}

rmm_status_t make_retry(rmm_resource_t *upstream, rmm_resource_t **out)
{
    return rmm_retry_adaptor_create(upstream, nullptr, out);
}

rmm_status_t make_wait(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_wait_options_t options = RMM_WAIT_OPTIONS_INIT;

    options.timeout_ms = 20;
    return rmm_wait_adaptor_create(upstream, &options, out);
}

rmm_status_t make_tracking(rmm_resource_t *upstream, rmm_resource_t **out)
{
    return rmm_tracking_adaptor_create(upstream, nullptr, out);
}

rmm_status_t make_statistics(rmm_resource_t *upstream, rmm_resource_t **out)
{
    return rmm_statistics_adaptor_create(upstream, nullptr, out);
}

rmm_status_t make_failure_callback(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_failure_callback_options_t options = RMM_FAILURE_CALLBACK_OPTIONS_INIT;

    options.callback = try_again;
    return rmm_failure_callback_adaptor_create(upstream, &options, out);
}

rmm_status_t make_logging(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;

    options.sink = sink;
    options.auto_flush = true;
    return rmm_logging_adaptor_create(upstream, &options, out);
}

/* A block that is freed, without a further exception, where one passes by. What throws in a free
 * has freed it. */
struct block {
    rmm_resource_t *mr;
    std::size_t bytes;
    void *ptr = nullptr;

    block(rmm_resource_t *of, std::size_t size) : mr(of), bytes(size)
    {
        CHECK(rmm_resource_alloc(mr, bytes, 0, nullptr, &ptr) == RMM_OK);
    }
    block(block &&other) noexcept
        : mr(other.mr), bytes(other.bytes), ptr(std::exchange(other.ptr, nullptr))
    {
    }
    void free()
    {
        rmm_resource_dealloc(mr, std::exchange(ptr, nullptr), bytes, 0, nullptr);
    }
    ~block()
    {
        if (ptr != nullptr) {
            countdown = 0;
            free();
        }
    }
};

/* Everything works, on this thread and another, and as much of it as if nothing had been. */
void use(rmm_resource_t *mr)
{
    std::vector<block> blocks;

    for (int i = 0; i < 24; i++) {
        blocks.emplace_back(mr, std::size_t(1) << 20);
    }
    for (block &one : blocks) {
        one.free();
    }
    (void)!rmm_resource_trim(mr, 0);
}

void use_with_an_exception(rmm_resource_t *mr)
{
    void *ptr = nullptr;

    block(mr, 1000).free();
    (void)!rmm_resource_alloc(mr, std::size_t(1) << 50, 0, nullptr, &ptr);
    use(mr);
}

typedef rmm_status_t (*make_t)(rmm_resource_t *upstream, rmm_resource_t **out);

/* Throws at the n-th call, for each n until none does. */
void sweep(rmm_resource_t *mr)
{
    bool has_thrown = true;

    alarm(100); /* a hang ends the test */
    for (int n = 1; has_thrown; n++) {
        has_thrown = false;
        countdown = n;
        try {
            use_with_an_exception(mr);
        } catch (const thrown &) {
            has_thrown = true;
        }
        countdown = 0;
        CHECK(cancellable());
        std::thread(use, mr).join();
    }
    rmm_resource_release(mr);
}

const make_t makers[] = {
    make_pool,     make_fixed_size, make_arena,    make_thread_safe,
    make_tracking, make_statistics, make_limiting, make_failure_callback,
    make_logging,  make_fallback,   make_retry,    make_wait};

struct opened {
    opened()
    {
        CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    }
    ~opened()
    {
        countdown = 0;
        (void)!rmm_log_to_callback(nullptr, nullptr);
        rmm_resource_release(cuda);
    }
};

} /* namespace */

CASE(an_exception_of_a_custom_resource_leaves_no_lock_behind)
{
    opened open;

    sweep(custom());
    for (make_t make : makers) {
        sweep(over(custom(), make));
        sweep(over(over(custom(), make_thread_safe), make));
    }
}

CASE(an_exception_of_a_log_function_leaves_no_lock_behind)
{
    opened open;

    CHECK(rmm_log_set_level(RMM_LEVEL_DEBUG) == RMM_OK);
    CHECK(rmm_log_to_callback(on_log, nullptr) == RMM_OK);
    for (make_t make : makers) {
        sweep(over(rmm_resource_retain(cuda), make));
    }
    CHECK(rmm_log_set_level(RMM_LEVEL_OFF) == RMM_OK);
}
