/* SPDX-License-Identifier: Apache-2.0 */
/* Failures as exceptions, exceptions of callbacks, and memory of the program's objects. */
#define RMM_CXX_MAIN
#include "cxx/cxx_library.hpp"
#include "cxx/harness.hpp"

#include <functional>
#include <new>

namespace
{

struct odd { /* no std::exception, and not copied silently */
    int number;
};

/* An object in the shape of CCCL since 3.1, over the library's own memory. */
struct memory {
    rmmc::cuda_resource cuda;
    int *live;

    void *allocate(rmm_stream_t stream, std::size_t bytes, std::size_t align)
    {
        void *block = cuda.allocate(stream, bytes, align);
        ++*live;
        return block;
    }
    void deallocate(
        rmm_stream_t stream, void *ptr, std::size_t bytes, std::size_t align) noexcept
    {
        --*live;
        cuda.deallocate(stream, ptr, bytes, align);
    }
    bool operator==(const memory &other) const noexcept
    {
        return live == other.live;
    }
};

/* The shape before 3.1, without stream order. */
struct plain_memory {
    void *allocate(std::size_t bytes, std::size_t align)
    {
        return ::operator new(bytes, std::align_val_t(align));
    }
    void deallocate(void *ptr, std::size_t, std::size_t align) noexcept
    {
        ::operator delete(ptr, std::align_val_t(align));
    }
};

/* Memory without stream order, which looks at its free whether a kernel has run. */
struct watching_memory {
    rmmc::cuda_resource cuda;
    const bool *has_run;
    bool *had_run;

    void *allocate_sync(std::size_t bytes, std::size_t align)
    {
        return cuda.allocate_sync(bytes, align);
    }
    void deallocate_sync(void *ptr, std::size_t bytes, std::size_t align) noexcept
    {
        *had_run = *has_run;
        cuda.deallocate_sync(ptr, bytes, align);
    }
};

/* Notes the last free. */
struct noting_memory {
    std::size_t *bytes_out, *align_out;

    void *allocate_sync(std::size_t bytes, std::size_t align)
    {
        return ::operator new(bytes, std::align_val_t(align));
    }
    void deallocate_sync(void *ptr, std::size_t bytes, std::size_t align) noexcept
    {
        *bytes_out = bytes;
        *align_out = align;
        ::operator delete(ptr, std::align_val_t(align));
    }
};

/* The last request that an object got, and how many of its blocks are live. */
struct request {
    std::size_t bytes, align;
    rmm_stream_t stream;
    int live;

    bool operator==(const request &other) const noexcept
    {
        return bytes == other.bytes && align == other.align && stream == other.stream &&
               live == other.live;
    }
};

struct last_request_memory {
    request *last;

    void *allocate(rmm_stream_t stream, std::size_t bytes, std::size_t align)
    {
        *last = {bytes, align, stream, last->live + 1};
        return ::operator new(bytes, std::align_val_t(align));
    }
    void deallocate(
        rmm_stream_t stream, void *ptr, std::size_t bytes, std::size_t align) noexcept
    {
        *last = {bytes, align, stream, last->live - 1};
        ::operator delete(ptr, std::align_val_t(align));
    }
};

void set_true(const void *const *params)
{
    **static_cast<bool *const *>(params[0]) = true;
}

[[noreturn]] void *refuse(std::size_t bytes, rmmc::stream_view)
{
    throw odd{static_cast<int>(bytes)};
}

void ignore(void *, std::size_t, rmmc::stream_view)
{
}

} /* namespace */

CASE(a_failure_keeps_status_message_and_native_error)
{
    rmmc::limiting_adaptor limited(rmmc::cuda_resource(), 1000);
    try {
        (void)limited.allocate({}, 1 << 20);
        CHECK(!"it was refused");
    } catch (const std::bad_alloc &error) {
        auto *full = dynamic_cast<const rmmc::out_of_memory *>(&error);
        CHECK(full != nullptr && full->status() == RMM_ERR_OUT_OF_MEMORY);
        CHECK(full->native_error() == 0);
        CHECK(std::strstr(error.what(), "exceeded the limit of 1000 bytes") != nullptr);
    }
    CHECK(rmm_sim_fail("mem_alloc:1:999"));
    try {
        (void)rmmc::cuda_resource().allocate({}, 100);
        CHECK(!"it was refused");
    } catch (const rmmc::bad_alloc &error) {
        CHECK(error.status() == RMM_ERR_BAD_ALLOC && error.native_error() == 999);
    }
}

CASE(each_status_has_its_class)
{
    THROWS(rmmc::out_of_memory, rmmc::throw_status(RMM_ERR_OUT_OF_MEMORY, 2, "x"));
    THROWS(rmmc::bad_alloc, rmmc::throw_status(RMM_ERR_BAD_ALLOC, 0, "x"));
    THROWS(rmmc::bad_alloc, rmmc::throw_status(RMM_ERR_OUT_OF_HOST_MEMORY, 0, "x"));
    THROWS(
        rmmc::invalid_argument, rmmc::throw_status(RMM_ERR_INVALID_ARGUMENT, 0, "x"));
    THROWS(
        rmmc::invalid_argument, rmmc::throw_status(RMM_ERR_INVALID_ALIGNMENT, 0, "x"));
    THROWS(rmmc::out_of_range, rmmc::throw_status(RMM_ERR_OUT_OF_RANGE, 0, "x"));
    THROWS(rmmc::unsupported, rmmc::throw_status(RMM_ERR_UNSUPPORTED, 0, "x"));
    THROWS(rmmc::cuda_error, rmmc::throw_status(RMM_ERR_CUDA, 700, "x"));
    THROWS(rmmc::cuda_error, rmmc::throw_status(RMM_ERR_NO_DEVICE, 0, "x"));
    THROWS(rmmc::io_error, rmmc::throw_status(RMM_ERR_IO, 0, "x"));
    THROWS(rmmc::busy_error, rmmc::throw_status(RMM_ERR_ASLEEP, 0, "x"));
    THROWS(rmmc::busy_error, rmmc::throw_status(RMM_ERR_IN_USE, 0, "x"));
    THROWS(rmmc::io_error, rmmc::throw_status(static_cast<rmm_status_t>(-99), 0, "x"));
    try {
        rmmc::throw_status(RMM_ERR_CUDA, 700, "illegal address");
    } catch (const rmmc::error &error) {
        rmmc::cuda_error copy = dynamic_cast<const rmmc::cuda_error &>(error);
        CHECK(copy.native_error() == 700 && copy.status() == RMM_ERR_CUDA);
        CHECK(std::string("illegal address") == copy.what());
        CHECK(copy.message() == error.message()); /* shared */
    }
}

CASE(an_exception_of_a_failure_callback_comes_out_at_the_caller)
{
    rmmc::limiting_adaptor limited(rmmc::cuda_resource(), 1000);
    rmmc::failure_callback_adaptor asking(
        limited, [](std::size_t bytes) -> bool { throw odd{static_cast<int>(bytes)}; });
    rmmc::statistics_adaptor above(asking);

    try {
        (void)above.allocate({}, 5000);
        CHECK(!"it was refused");
    } catch (const odd &error) {
        CHECK(error.number == 5000);
    }
    void *block = above.allocate({}, 500); /* nothing is left of it */
    above.deallocate({}, block, 500);
    THROWS(rmmc::out_of_memory, limited.allocate({}, 5000));
}

CASE(a_failure_callback_tries_again_and_ends_with_its_adaptor)
{
    auto alive = std::make_shared<int>(0);
    rmmc::limiting_adaptor limited(rmmc::cuda_resource(), 2000);
    void *block = limited.allocate({}, 1500);
    {
        rmmc::resource kept;
        {
            rmmc::failure_callback_adaptor freeing(limited, [&, alive](std::size_t) {
                ++*alive;
                limited.deallocate({}, block, 1500);
                return true;
            });
            kept = freeing;
        }
        CHECK(alive.use_count() == 2);
        void *other = kept.allocate({}, 1700);
        CHECK(*alive == 1);
        kept.deallocate({}, other, 1700);
    }
    CHECK(alive.use_count() == 1);
    THROWS(rmmc::invalid_argument, rmmc::failure_callback_adaptor(limited, nullptr));
    auto callback = [alive](std::size_t) { return false; };
    THROWS(
        rmmc::invalid_argument,
        rmmc::failure_callback_adaptor(rmmc::resource(), callback));
}

CASE(an_exception_of_a_callback_resource_passes_a_pool)
{
    rmmc::callback_resource refusing(refuse, ignore);
    rmmc::pool_resource pool(refusing);
    rmmc::limiting_adaptor limited(pool, 1 << 30);

    THROWS(odd, refusing.allocate({}, 1000));
    THROWS(odd, limited.allocate({}, 1000));
    THROWS(odd, rmmc::device_buffer(1000, {}, limited));
}

CASE(a_pool_that_tries_again_drops_the_exception_of_the_first_attempt)
{
    int calls = 0;
    rmmc::cuda_resource cuda;
    rmmc::callback_resource moody(
        [&](std::size_t bytes, rmmc::stream_view stream) {
            if (++calls == 1) {
                throw std::bad_alloc();
            }
            return cuda.allocate(stream, bytes);
        },
        [&](void *ptr, std::size_t bytes, rmmc::stream_view stream) {
            cuda.deallocate(stream, ptr, bytes);
        });
    rmmc::failure_callback_adaptor again(moody, [](std::size_t) { return true; });
    void *block = again.allocate({}, 1000);

    CHECK(block != nullptr && calls == 2);
    again.deallocate({}, block, 1000);
    rmmc::limiting_adaptor limited(again, 10);
    THROWS(rmmc::out_of_memory, limited.allocate({}, 1000)); /* not the old one */
}

CASE(the_last_exception_of_a_call_comes_out_and_no_log_replaces_it)
{
    rmmc::callback_resource refusing(
        [](std::size_t, rmmc::stream_view) -> void * { throw std::bad_alloc(); },
        ignore);
    rmmc::failure_callback_adaptor asking(
        refusing, [](std::size_t) -> bool { throw odd{4}; });
    int rows = 0;
    rmmc::logging_options flush;
    flush.auto_flush = true;
    rmmc::logging_adaptor logging(
        asking,
        [&](std::string_view) {
            if (++rows > 1) {
                throw rows;
            }
        },
        flush);

    THROWS(odd, logging.allocate({}, 10));
    CHECK(rows == 2);
    THROWS(int, std::rethrow_exception(rmmc::take_unhandled_exception()));
}

CASE(nested_calls_see_only_their_own_exceptions)
{
    rmmc::callback_resource refusing(refuse, ignore);
    bool seen = false;
    rmmc::callback_resource outer(
        [&](std::size_t bytes, rmmc::stream_view stream) -> void * {
            try {
                (void)refusing.allocate(stream, 7);
            } catch (const odd &error) {
                seen = error.number == 7;
            }
            throw odd{static_cast<int>(bytes)};
        },
        ignore);

    try {
        (void)outer.allocate({}, 1000);
        CHECK(!"it was refused");
    } catch (const odd &error) {
        CHECK(seen && error.number == 1000);
    }
}

CASE(a_call_of_c_leaves_no_exception_for_a_later_one)
{
    rmmc::callback_resource refusing(refuse, ignore);
    rmmc::limiting_adaptor limited(rmmc::cuda_resource(), 10);
    void *block = nullptr;

    CHECK(
        rmm_resource_alloc(refusing.get(), 100, 0, nullptr, &block) ==
        RMM_ERR_BAD_ALLOC);
    THROWS(rmmc::out_of_memory, limited.allocate({}, 1000));
}

CASE(an_exception_of_a_free_or_a_sink_is_kept_for_who_asks)
{
    rmmc::cuda_resource cuda;
    rmmc::callback_resource throwing(
        [&](std::size_t bytes, rmmc::stream_view stream) {
            return cuda.allocate(stream, bytes);
        },
        [&](void *ptr, std::size_t bytes, rmmc::stream_view stream) {
            cuda.deallocate(stream, ptr, bytes);
            throw odd{1};
        });
    throwing.deallocate({}, throwing.allocate({}, 100), 100);
    std::exception_ptr kept = rmmc::take_unhandled_exception();
    CHECK(kept != nullptr && rmmc::take_unhandled_exception() == nullptr);
    THROWS(odd, std::rethrow_exception(kept));

    bool is_on = false;
    rmmc::logging_options flush;
    flush.auto_flush = true;
    rmmc::logging_adaptor logging(
        cuda,
        [&](std::string_view) {
            if (is_on) {
                throw odd{2};
            }
        },
        flush);
    is_on = true;
    void *block = logging.allocate({}, 100); /* logging fails no allocation */
    CHECK(rmmc::take_unhandled_exception() != nullptr);
    logging.deallocate({}, block, 100);
    CHECK(rmmc::take_unhandled_exception() != nullptr);
    THROWS(odd, logging.allocate({}, std::size_t(1) << 60));
    is_on = false;
    (void)rmmc::take_unhandled_exception();
}

CASE(an_exception_of_a_log_function_comes_out_of_the_call_that_failed)
{
    bool is_on = true;
    int messages = 0;
    rmmc::set_log_level(RMM_LEVEL_ERROR);
    rmmc::log_to([&](rmm_log_level_t, std::string_view) {
        messages++;
        if (is_on) {
            throw odd{3};
        }
    });
    THROWS(odd, rmmc::limiting_adaptor(rmmc::cuda_resource(), 10).allocate({}, 1000));
    CHECK(messages == 1);
    is_on = false;
    THROWS(
        rmmc::out_of_memory,
        rmmc::limiting_adaptor(rmmc::cuda_resource(), 10).allocate({}, 1000));
    rmmc::set_log_level(RMM_LEVEL_OFF);
    rmmc::log_to(nullptr);
}

CASE(an_object_of_the_program_is_memory_below_a_pool)
{
    int live = 0;
    {
        rmmc::custom_resource custom(memory{{}, &live}, "mine");
        rmmc::custom_resource same(memory{{}, &live});
        int others = 0;
        CHECK(custom == same && custom != rmmc::custom_resource(memory{{}, &others}));
        CHECK(std::strcmp(custom.name(), "mine") == 0);
        rmmc::pool_resource pool(custom);
        void *block = pool.allocate({}, 1000);
        CHECK(live == 1);
        pool.deallocate({}, block, 1000);
    }
    CHECK(live == 0); /* the pool gave its chunk back */
}

CASE(allocators_are_equal_if_their_resources_are)
{
    int live = 0, others = 0;
    const rmmc::custom_resource custom(memory{{}, &live});
    const rmmc::custom_resource same(memory{{}, &live});
    const rmmc::custom_resource other(memory{{}, &others});
    const rmmc::polymorphic_allocator<int> ints(custom);

    CHECK(custom.get() != same.get());
    CHECK(ints == rmmc::polymorphic_allocator<double>(same));
    CHECK(ints != rmmc::polymorphic_allocator<int>(other));
}

CASE(the_objects_of_a_callback_resource_end_with_it)
{
    auto alive = std::make_shared<int>(0);
    {
        rmmc::callback_resource callback(
            [alive](std::size_t, rmmc::stream_view) -> void * { return nullptr; },
            [alive](void *, std::size_t, rmmc::stream_view) {});
        CHECK(alive.use_count() == 3);
    }
    CHECK(alive.use_count() == 1);
}

CASE(an_object_without_stream_order_works_and_a_reference_to_one)
{
    plain_memory plain;
    rmmc::custom_resource<RMM_HOST_ACCESSIBLE> custom(std::ref(plain));
    rmmc::custom_resource<RMM_HOST_ACCESSIBLE> copy = custom;
    void *block = custom.allocate({}, 100, 512);

    static_cast<char *>(block)[99] = 1;
    CHECK(copy == custom);
    CHECK(custom == rmmc::custom_resource<RMM_HOST_ACCESSIBLE>(std::ref(plain)));
    copy.deallocate({}, block, 100, 512);
    static_assert(!rmmc::is_custom_memory_v<int>, "");
    static_assert(rmmc::is_custom_memory_v<rmmc::pool_resource>, "");
}

CASE(a_free_of_memory_without_stream_order_waits_for_its_stream)
{
    bool has_run = false, had_run = false;
    bool *flag = &has_run;
    const void *params[] = {&flag};
    const std::size_t bytes[] = {sizeof(flag)};
    rmmc::custom_resource custom(watching_memory{{}, &has_run, &had_run});
    rmmc::stream stream(RMM_STREAM_NON_BLOCKING);
    void *block = custom.allocate(stream, 100);

    CHECK(rmm_sim_launch("set_true", set_true, stream.value(), params, bytes, 1) == 0);
    CHECK(!has_run);
    custom.deallocate(stream, block, 100);
    CHECK(had_run);
}

CASE(each_way_to_free_passes_on_size_and_alignment)
{
    std::size_t bytes = 0, align = 0;
    rmmc::custom_resource<RMM_HOST_ACCESSIBLE> custom(noting_memory{&bytes, &align});

    custom.deallocate(custom.allocate(1000, 512), 1000, 512);
    CHECK(bytes == 1000 && align == 512);
    custom.deallocate_sync(custom.allocate_sync(2000, 1024), 2000, 1024);
    CHECK(bytes == 2000 && align == 1024);
    custom.deallocate({}, custom.allocate({}, 3000, 2048), 3000, 2048);
    CHECK(bytes == 3000 && align == 2048);
    custom.deallocate_async(custom.allocate_async(4000, 4096, {}), 4000, 4096, {});
    CHECK(bytes == 4000 && align == 4096);
    custom.deallocate_async(custom.allocate_async(5000, {}), 5000, {});
    CHECK(bytes == 5000 && align == RMM_ALIGN_DEFAULT);
}

CASE(the_status_of_an_exception_tells_a_failure_callback)
{
    int asked = 0;
    auto ask = [&](std::size_t) {
        asked++;
        return false;
    };
    auto throwing = [&](auto exception) {
        return rmmc::failure_callback_adaptor(
            rmmc::callback_resource(
                [exception](std::size_t, rmmc::stream_view) -> void * {
                    throw exception;
                },
                ignore),
            ask);
    };

    THROWS(std::bad_alloc, throwing(std::bad_alloc()).allocate({}, 1));
    CHECK(asked == 1); /* out of memory */
    THROWS(odd, throwing(odd{1}).allocate({}, 1));
    THROWS(
        rmmc::bad_alloc,
        throwing(rmmc::bad_alloc(RMM_ERR_BAD_ALLOC, 0, "x")).allocate({}, 1));
    CHECK(asked == 1); /* other failures */
    THROWS(
        rmmc::out_of_memory,
        throwing(rmmc::out_of_memory(RMM_ERR_OUT_OF_MEMORY, 2, "x")).allocate({}, 1));
    CHECK(asked == 2);
}

CASE(exceptions_pass_between_a_program_and_its_libraries)
{
    rmmc::pool_resource pool(library_refusing());
    rmmc::callback_resource refusing(
        [](std::size_t bytes, rmmc::stream_view) -> void * {
            throw library_error(bytes);
        },
        ignore);

    THROWS(library_error, pool.allocate({}, 1000));
    CHECK(library_catches(refusing));
    CHECK(library_catches(rmmc::custom_resource(pool))); /* there and back */
}

CASE(each_shape_of_an_allocation_passes_its_size_alignment_and_stream_on)
{
    request last{};
    rmmc::custom_resource<RMM_HOST_ACCESSIBLE> mr(last_request_memory{&last});
    rmmc::stream stream;
    const rmm_stream_t of = stream.value();

    void *block = mr.allocate_async(100, 1024, stream);
    CHECK(last == (request{100, 1024, of, 1}));
    mr.deallocate_async(block, 100, 1024, stream);
    CHECK(last == (request{100, 1024, of, 0}));
    block = mr.allocate_async(200, stream);
    CHECK(last == (request{200, RMM_ALIGN_DEFAULT, of, 1}));
    mr.deallocate_async(block, 200, stream);
    CHECK(last == (request{200, RMM_ALIGN_DEFAULT, of, 0}));
    block = mr.allocate(300, 2048);
    CHECK(last.bytes == 300 && last.align == 2048 && last.live == 1);
    mr.deallocate(block, 300, 2048);
    CHECK(last.bytes == 300 && last.align == 2048 && last.live == 0);
    CHECK(mr.get_stats().current_count == 0);
}

CASE(names_flags_and_sizes_of_callbacks_arrive)
{
    std::size_t freed = 0;
    rmmc::cuda_resource cuda;
    auto never = [](std::size_t) { return false; };
    rmmc::failure_callback_adaptor named(cuda, never, 0, "a_name");
    rmmc::callback_resource callback(
        [&](std::size_t bytes, rmmc::stream_view stream) {
            return cuda.allocate(stream, bytes);
        },
        [&](void *ptr, std::size_t bytes, rmmc::stream_view stream) {
            freed = bytes;
            cuda.deallocate(stream, ptr, bytes);
        });

    CHECK(std::strcmp(named.name(), "a_name") == 0);
    THROWS(
        rmmc::invalid_argument, rmmc::failure_callback_adaptor(cuda, never, ~0u, "x"));
    callback.deallocate({}, callback.allocate({}, 300), 300);
    CHECK(freed == 300);
}
