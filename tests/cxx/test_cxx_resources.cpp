/* SPDX-License-Identifier: Apache-2.0 */
/* Resources and adaptors as values: each class, its getters, copies, moves and comparisons. */
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#include <cstring>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

static_assert(std::is_nothrow_copy_constructible<rmmc::resource>::value, "");
static_assert(std::is_nothrow_move_constructible<rmmc::pool_resource>::value, "");
static_assert(std::is_nothrow_move_assignable<rmmc::limiting_adaptor<>>::value, "");
static_assert(std::is_nothrow_move_constructible<rmmc::device_buffer>::value, "");
static_assert(std::is_nothrow_move_assignable<rmmc::device_array<int>>::value, "");
static_assert(!std::is_copy_constructible<rmmc::device_buffer>::value, "");
static_assert(!std::is_copy_constructible<rmmc::stream>::value, "");

namespace
{

const std::uint32_t both = RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE;

/* An allocation in either way, and each way back. */
void use(const rmmc::resource &mr, rmmc::stream_view stream)
{
    std::uint64_t count = mr.get_stats().current_count;
    void *ordered = mr.allocate(stream, 1000);
    void *synchronous = mr.allocate_sync(1000, 256);

    CHECK(ordered != nullptr && synchronous != nullptr && ordered != synchronous);
    CHECK(mr.get_stats().current_count == count + 2);
    mr.deallocate(stream, ordered, 1000);
    mr.deallocate_sync(synchronous, 1000, 256);

    ordered = mr.allocate_async(1000, 256, stream); /* as CCCL before 3.1 */
    synchronous = mr.allocate(1000, 256);
    mr.deallocate_async(ordered, 1000, 256, stream);
    mr.deallocate(synchronous, 1000, 256);
    CHECK(mr.get_stats().current_count == count);
    CHECK(mr.get_stats().invalid_free_count == 0);
}

/* A class of resource, of which there is one object. */
template <class Resource>
void check_class(const Resource &mr, const char *type, std::uint32_t properties)
{
    rmmc::stream stream;

    static_assert(sizeof(Resource) == sizeof(void *), "a class adds no data");
    CHECK(std::strcmp(mr.type(), type) == 0);
    CHECK((mr.properties() & properties) == properties);
    CHECK(Resource::required_properties == properties);
    use(mr, stream);

    rmmc::resource plain = mr;
    CHECK(plain.get() == mr.get() && plain == mr);
    auto back = rmmc::resource_cast<Resource>(plain);
    CHECK(back.has_value() && back->get() == mr.get());
    CHECK(!rmmc::resource_cast<Resource>(rmmc::resource()).has_value());
}

} /* namespace */

CASE(every_base_resource_is_a_value_of_its_class)
{
    check_class(rmmc::cuda_resource(), "cuda", RMM_DEVICE_ACCESSIBLE);
    check_class(rmmc::managed_resource(), "managed", both);
    check_class(rmmc::pinned_resource(), "pinned", both);
    check_class(rmmc::host_resource(), "host", RMM_HOST_ACCESSIBLE);
    check_class(rmmc::system_resource(), "system", both);
    check_class(rmmc::sam_headroom_resource(), "sam_headroom", both);
    check_class(rmmc::async_managed_resource(), "async_managed", both);
    check_class(rmmc::async_pinned_resource(), "async_pinned", both);
}

CASE(every_resource_over_another_is_a_value_of_its_class)
{
    rmmc::cuda_resource cuda;
    rmmc::binning_resource binning(cuda);

    check_class(rmmc::pool_resource(cuda), "pool", RMM_DEVICE_ACCESSIBLE);
    check_class(rmmc::auto_resource(), "pool", RMM_DEVICE_ACCESSIBLE);
    check_class(rmmc::arena_resource(cuda), "arena", RMM_DEVICE_ACCESSIBLE);
    check_class(rmmc::fixed_size_resource(cuda), "fixed_size", RMM_DEVICE_ACCESSIBLE);
    binning.add_bin(2000);
    binning.add_bin(4000, rmmc::fixed_size_resource(cuda));
    check_class(binning, "binning", RMM_DEVICE_ACCESSIBLE);
    CHECK(binning.upstream() == cuda);
}

CASE(every_adaptor_is_a_value_of_its_class)
{
    rmmc::pool_resource pool{rmmc::cuda_resource()};
    auto drop = [](std::string_view) {};

    check_class(rmmc::aligned_adaptor(pool), "aligned", RMM_DEVICE_ACCESSIBLE);
    check_class(
        rmmc::limiting_adaptor(pool, 1 << 20), "limiting", RMM_DEVICE_ACCESSIBLE);
    check_class(rmmc::prefetch_adaptor(pool), "prefetch", RMM_DEVICE_ACCESSIBLE);
    check_class(rmmc::thread_safe_adaptor(pool), "thread_safe", RMM_DEVICE_ACCESSIBLE);
    check_class(rmmc::tracking_adaptor(pool), "tracking", RMM_DEVICE_ACCESSIBLE);
    check_class(rmmc::statistics_adaptor(pool), "statistics", RMM_DEVICE_ACCESSIBLE);
    check_class(
        rmmc::fallback_adaptor(pool, rmmc::managed_resource()), "fallback",
        RMM_DEVICE_ACCESSIBLE);
    check_class(
        rmmc::fallback_adaptor(rmmc::pinned_resource(), rmmc::managed_resource()),
        "fallback", both);
    check_class(rmmc::retry_adaptor(pool), "retry", RMM_DEVICE_ACCESSIBLE);
    check_class(
        rmmc::wait_adaptor(pool, std::chrono::seconds(5)), "wait",
        RMM_DEVICE_ACCESSIBLE);
    check_class(rmmc::logging_adaptor(pool, drop), "logging", RMM_DEVICE_ACCESSIBLE);
    check_class(
        rmmc::failure_callback_adaptor(pool, [](std::size_t) { return false; }),
        "failure_callback", RMM_DEVICE_ACCESSIBLE);
}

CASE(an_adaptor_knows_of_its_memory_what_its_upstream_does)
{
    rmmc::host_resource host;
    rmmc::managed_resource managed;
    rmmc::resource plain = rmmc::cuda_resource();

    check_class(rmmc::limiting_adaptor(host, 1 << 20), "limiting", RMM_HOST_ACCESSIBLE);
    check_class(rmmc::statistics_adaptor(managed), "statistics", both);
    check_class(rmmc::aligned_adaptor(plain), "aligned", RMM_DEVICE_ACCESSIBLE);
    check_class(rmmc::aligned_adaptor<0>(plain), "aligned", 0);
    plain = host;
    check_class(rmmc::aligned_adaptor<0>(plain), "aligned", 0);
    THROWS(rmmc::invalid_argument, rmmc::aligned_adaptor<>(host));
    THROWS(rmmc::invalid_argument, rmmc::aligned_adaptor(plain));
    THROWS(rmmc::invalid_argument, rmmc::statistics_adaptor(plain));
}

CASE(a_conversion_checks_what_memory_is_accessible_from)
{
    rmmc::resource host = rmmc::host_resource();
    rmmc::pool_resource pool{rmmc::pinned_resource()};
    rmmc::host_device_resource checked(pool);
    rmmc::device_resource device = checked;
    rmmc::host_accessible_resource accessible = checked;

    CHECK(device == pool && accessible == pool);
    THROWS(rmmc::invalid_argument, rmmc::device_resource(host));
    THROWS(rmmc::invalid_argument, rmmc::device_resource(rmmc::resource()));
    static_assert(
        !std::is_convertible<rmmc::resource, rmmc::device_resource>::value, "");
    static_assert(
        !std::is_convertible<rmmc::host_resource, rmmc::device_resource>::value, "");
    static_assert(
        std::is_convertible<rmmc::pinned_resource, rmmc::device_resource>::value, "");
}

CASE(adaptors_serve_or_refuse_when_memory_is_short)
{
    rmmc::pool_options pool_options;
    void *block;

    pool_options.maximum_bytes = 1 << 20;
    rmmc::pool_resource pool(rmmc::cuda_resource(), pool_options);
    rmmc::limiting_adaptor limited(pool, 1 << 16);

    rmmc::fallback_adaptor in_two(limited, rmmc::managed_resource());
    block = in_two.allocate({}, 1 << 17);
    CHECK(in_two.alternate_count() == 1);
    CHECK(in_two.alternate() == rmmc::managed_resource());
    in_two.deallocate({}, block, 1 << 17);
    rmmc::wait_adaptor waiting(limited, std::chrono::milliseconds(20));
    CHECK(waiting.waiting() == 0);
    THROWS(rmmc::out_of_memory, waiting.allocate({}, 1 << 17));
    rmmc::retry_adaptor retries(limited, std::chrono::milliseconds(1));
    THROWS(rmmc::out_of_memory, retries.allocate({}, 1 << 17));
    CHECK(pool.get_stats().free_bytes == pool.get_stats().reserved_bytes);
    CHECK(pool.get_stats().maximum_bytes == pool.maximum_bytes());
}

CASE(a_pool_sleeps_and_wakes)
{
    rmmc::pool_options options;
    rmmc::pool_sleep_options discarding;
    options.flags = RMM_POOL_VIRTUAL;
    options.initial_bytes = 1 << 21;
    rmmc::pool_resource pool(rmmc::resource(), options);
    void *block = pool.allocate({}, 1000);

    pool.sleep();
    CHECK(pool.state() == RMM_POOL_ASLEEP && pool.reserved_bytes() == 0);
    CHECK(pool.get_stats().asleep_bytes == 1 << 21);
    THROWS(rmmc::busy_error, pool.allocate({}, 1000));
    THROWS(rmmc::busy_error, pool.sleep());
    pool.wake();
    CHECK(pool.state() == RMM_POOL_AWAKE && pool.reserved_bytes() == 1 << 21);
    discarding.flags = RMM_POOL_SLEEP_DISCARD;
    pool.sleep(discarding);
    pool.wake();
    pool.deallocate({}, block, 1000);
    THROWS(rmmc::unsupported, rmmc::pool_resource(rmmc::cuda_resource()).sleep());
}

CASE(options_and_getters_agree)
{
    rmmc::pool_options pool_options;
    rmmc::fixed_size_options fixed_options;
    rmmc::sam_headroom_options sam_options;
    rmmc::aligned_options aligned_options;
    rmmc::async_options async_options;

    pool_options.initial_bytes = 1 << 20;
    pool_options.maximum_bytes = 1 << 22;
    pool_options.name = "mine";
    fixed_options.block_bytes = 1000;
    fixed_options.blocks_per_chunk = 7;
    sam_options.headroom_bytes = 12345;
    aligned_options.alignment_bytes = 4096;
    aligned_options.threshold_bytes = 100;
    async_options.release_threshold_bytes = 1 << 20;

    rmmc::pool_resource pool(rmmc::cuda_resource(), pool_options);
    CHECK(pool.maximum_bytes() == 1 << 22 && pool.reserved_bytes() == 1 << 20);
    CHECK(std::strcmp(pool.name(), "mine") == 0 && pool.device() == 0);
    pool.trim();
    CHECK(pool.reserved_bytes() == 0);

    rmmc::fixed_size_resource fixed(pool, fixed_options);
    CHECK(fixed.block_bytes() == 1024 && fixed.blocks_per_chunk() == 7);
    CHECK(rmmc::sam_headroom_resource(sam_options).headroom_bytes() == 12345);

    rmmc::aligned_adaptor aligned(pool, aligned_options);
    CHECK(aligned.alignment_bytes() == 4096 && aligned.threshold_bytes() == 100);

    rmmc::limiting_adaptor limited(pool, 1 << 16);
    CHECK(limited.limit_bytes() == 1 << 16 && limited.alignment_bytes() == 256);
    void *block = limited.allocate({}, 300);
    CHECK(limited.allocated_bytes() == 512);
    limited.deallocate({}, block, 300);

    rmmc::async_resource async(async_options);
    CHECK(async.release_threshold_bytes() == 1 << 20 && async.pool_handle() != nullptr);
    rmmc::async_view_resource view(async.pool_handle());
    CHECK(view.pool_handle() == async.pool_handle());
    rmmc::async_view_resource waits(async.pool_handle(), RMM_ASYNC_WAIT_BEFORE_REFUSAL);
    CHECK(!(waits == view) && waits.pool_handle() == async.pool_handle());
    THROWS(rmmc::invalid_argument, rmmc::async_managed_resource(1));
    CHECK(view.release_threshold_bytes() == 1 << 20);
    check_class(async, "async", RMM_DEVICE_ACCESSIBLE);
    check_class(view, "async_view", RMM_DEVICE_ACCESSIBLE);

    pool_options = rmmc::pool_options();
    pool_options.flags = RMM_POOL_VIRTUAL;
    check_class(
        rmmc::pool_resource(rmmc::resource(), pool_options), "pool",
        RMM_DEVICE_ACCESSIBLE);
}

CASE(a_spec_makes_what_it_names)
{
    rmmc::resource mr = rmmc::resource_from_spec("statistics+pool:1MiB");

    CHECK(rmmc::resource_cast<rmmc::statistics_adaptor<>>(mr).has_value());
    CHECK(rmmc::resource_cast<rmmc::pool_resource>(mr.upstream()).has_value());
    CHECK(!rmmc::resource_cast<rmmc::pool_resource>(mr).has_value());
    rmmc::check_spec("pool:50%");
    THROWS(rmmc::invalid_argument, rmmc::check_spec("pond"));
    THROWS(rmmc::invalid_argument, rmmc::resource_from_spec("pool:lots"));
}

CASE(a_tracking_adaptor_lists_live_blocks)
{
    rmmc::tracking_options options;
    options.capture_stacks = true;
    rmmc::tracking_adaptor tracking(rmmc::cuda_resource(), options);
    void *block = tracking.allocate({}, 1234);
    std::vector<rmmc::tracked_block> blocks = tracking.outstanding();

    CHECK(blocks.size() == 1 && blocks[0].ptr == block && blocks[0].bytes == 1234);
    CHECK(!blocks[0].frames.empty());
    CHECK(tracking.report_text().find("1234 B") != std::string::npos);
    int fds[2];
    CHECK(pipe(fds) == 0);
    tracking.report(fds[1]);
    close(fds[1]);
    char text[64] = "";
    CHECK(read(fds[0], text, sizeof(text) - 1) > 0);
    close(fds[0]);
    tracking.deallocate({}, block, 1234);
    CHECK(tracking.outstanding().empty() && tracking.report_text().empty());
}

/* So few frames that all of them are the library's own, which it leaves out otherwise. */
CASE(a_stack_that_ends_in_the_library_is_shown)
{
    rmmc::tracking_options options;
    options.capture_stacks = true;
    options.max_frames = 1;
    rmmc::tracking_adaptor tracking(rmmc::cuda_resource(), options);
    void *block = tracking.allocate({}, 1234);
    const std::string text = tracking.report_text();

    CHECK(text.find("#0 in ") != std::string::npos);
    CHECK(text.find("#1 in ") == std::string::npos);
    tracking.deallocate({}, block, 1234);
}

CASE(statistics_count_in_scopes_that_end_by_themselves)
{
    rmmc::statistics_adaptor statistics{rmmc::cuda_resource()};
    void *outer = statistics.allocate({}, 100);

    statistics.push();
    void *inner = statistics.allocate({}, 50);
    CHECK(statistics.counters().current_bytes == 50);
    statistics.deallocate({}, outer, 100);
    CHECK(statistics.pop().bytes_difference() == -50);
    CHECK(statistics.counters().peak_bytes == 150);
    THROWS(rmmc::out_of_range, statistics.pop());
    {
        rmmc::scoped_statistics scope(statistics);
        statistics.deallocate({}, inner, 50);
        CHECK(scope.counters().count_difference() == -1);
        CHECK(statistics.thread_counters().bytes_difference() == -50);
        rmmc::scoped_statistics nested(statistics);
        CHECK(nested.pop().total_count == 0);
    }
    THROWS(rmmc::out_of_range, statistics.thread_counters());
    THROWS(rmmc::out_of_range, statistics.thread_pop());
    statistics.thread_push();
    statistics.thread_pop();
}

CASE(a_copy_shares_and_a_move_empties)
{
    rmmc::pool_resource pool{rmmc::cuda_resource()};
    rmmc::pool_resource copy = pool;
    rmmc::pool_resource moved = std::move(copy);

    CHECK(moved == pool && moved.get() == pool.get() && !copy && moved);
    copy = moved;
    CHECK(copy == pool);
    copy = std::move(moved);
    CHECK(copy == pool && !moved);
    rmmc::resource &same = copy;
    copy = static_cast<rmmc::pool_resource &>(same);
    CHECK(copy == pool);
    copy = std::move(static_cast<rmmc::pool_resource &>(same));
    CHECK(copy == pool); /* a move onto itself keeps it */
    std::swap(copy, moved);
    CHECK(!copy && moved == pool);
    use(moved, {});
}

CASE(an_empty_resource_refuses_and_does_not_crash)
{
    rmmc::resource empty, other = rmmc::cuda_resource();
    rmmc::resource taken = std::move(other);

    CHECK(!empty && empty == other && empty != taken && taken != empty);
    CHECK(std::strcmp(empty.type(), "") == 0 && std::strcmp(empty.name(), "") == 0);
    CHECK(empty.properties() == 0 && empty.device() == -1 && !empty.upstream());
    CHECK(empty.get_user_data() == nullptr);
    empty.set_user_data(&empty);
    empty.deallocate({}, nullptr, 0);
    empty.deallocate_sync(nullptr, 0);
    THROWS(rmmc::invalid_argument, other.allocate({}, 1));
    THROWS(rmmc::invalid_argument, empty.allocate_sync(1));
    THROWS(rmmc::invalid_argument, empty.get_stats());
    THROWS(rmmc::invalid_argument, empty.trim());
    THROWS(rmmc::invalid_argument, rmmc::pool_resource(empty));
    THROWS(rmmc::invalid_argument, rmmc::limiting_adaptor(empty, 1));
    THROWS(rmmc::invalid_argument, rmmc::statistics_adaptor(empty));
}

CASE(references_pass_to_c_and_back)
{
    rmm_resource_t *raw = nullptr;
    CHECK(rmm_cuda_resource_create(&raw) == RMM_OK);
    rmmc::resource adopted = rmmc::resource::adopt(raw);
    rmmc::resource shared = rmmc::resource::share(raw);

    CHECK(adopted == shared && shared.get() == raw);
    raw = shared.release();
    CHECK(!shared);
    rmm_resource_release(raw);
    CHECK(!rmmc::resource::share(nullptr) && !rmmc::resource::adopt(nullptr));
    adopted.set_user_data(&raw);
    CHECK(adopted.get_user_data() == &raw);
    adopted.set_user_data(nullptr);
}

CASE(a_default_of_a_stream_in_braces_is_no_size)
{
    rmmc::cuda_resource cuda;
    void *block = cuda.allocate({}, 512); /* not 0 bytes aligned to 512 */

    CHECK(block != nullptr && cuda.get_stats().current_bytes >= 512);
    cuda.deallocate({}, block, 512);
}

CASE(a_conversion_says_what_is_missing)
{
    auto message_of = [](const rmmc::resource &mr) {
        try {
            rmmc::device_resource refused(mr);
        } catch (const rmmc::invalid_argument &error) {
            return std::string(error.what());
        }
        return std::string();
    };

    CHECK(message_of(rmmc::resource()) == "the resource is empty");
    CHECK(
        message_of(rmmc::host_resource()) ==
        "the resource's memory is not accessible from where it should be");
    rmmc::resource limited = rmmc::limiting_adaptor(rmmc::host_resource(), 1000);
    CHECK(!rmmc::resource_cast<rmmc::limiting_adaptor<>>(limited).has_value());
    CHECK(rmmc::resource_cast<rmmc::limiting_adaptor<RMM_HOST_ACCESSIBLE>>(limited)
              .has_value());
}

CASE(a_trim_keeps_what_it_is_told_to)
{
    rmmc::pool_resource pool{rmmc::cuda_resource()};

    pool.deallocate({}, pool.allocate({}, 1 << 20), 1 << 20);
    const std::uint64_t held = pool.get_stats().reserved_bytes;
    CHECK(held >= 1 << 20);
    pool.trim(held);
    CHECK(pool.get_stats().reserved_bytes == held);
    pool.trim();
    CHECK(pool.get_stats().reserved_bytes == 0);
}

CASE(memory_goes_to_another_process_and_is_the_same)
{
    rmmc::resource pool = rmmc::resource_from_spec("pool_virtual:exportable");
    char *block = static_cast<char *>(pool.allocate_sync(3 << 20));
    int pair[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    {
        rmmc::exported_memory exported(pool, block, 1000);
        rmmc::exported_memory moved(std::move(exported));
        moved.send(pair[0]);
        CHECK(exported.get().record == nullptr);
    }
    rmmc::imported_memory imported(rmmc::exported_memory::receive(pair[1]));
    rmmc::imported_memory other(std::move(imported));
    CHECK(imported.data() == nullptr && imported.size() == 0);
    CHECK(other.size() == 1000 && other.device() == 0);
    block[999] = 5;
    CHECK(static_cast<char *>(other.data())[999] == 5);
    close(pair[0]);
    THROWS(rmmc::io_error, rmmc::exported_memory::receive(pair[1]));
    THROWS(rmmc::unsupported, rmmc::exported_memory(rmmc::cuda_resource(), block));
    close(pair[1]);
    pool.deallocate_sync(block, 3 << 20);
}
