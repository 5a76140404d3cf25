// SPDX-License-Identifier: Apache-2.0
// Resources of this library in the hands of RAPIDS RMM, and the other way round, over the
// simulated GPU or a real one. Compiled with the real headers of RMM and linked with its library:
// what RMM does here needs no CUDA.
#include <rmm/cxx/rapids.hpp>
#include <rmm/rmm.hpp>

#include <rmm/device_buffer.hpp>
#include <rmm/version_config.hpp>
#if __has_include(<rmm/mr/failure_callback_resource_adaptor.hpp>)
#include <rmm/mr/failure_callback_resource_adaptor.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#else
#include <rmm/mr/device/failure_callback_resource_adaptor.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/mr/device/statistics_resource_adaptor.hpp>
#endif

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define CHECK(condition)                                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);       \
            std::_Exit(1);                                                             \
        }                                                                              \
    } while (false)

namespace
{

namespace mr = rmm::mr;
const rmm::cuda_device_id device{0};
const cudaStream_t stream = nullptr;

// Both eras of RMM: a resource as a pointer, or as a value.
#if RMM_CXX_RAPIDS_BY_VALUE
using statistics_adaptor = mr::statistics_resource_adaptor;
using failure_adaptor = mr::failure_callback_resource_adaptor<rmm::out_of_memory>;
using rmm_pool = mr::pool_memory_resource;
template <class T> T &given(T &resource)
{
    return resource;
}
template <class T> void set_default(T &resource, rmm::cuda_device_id id = device)
{
    mr::set_per_device_resource(id, resource);
}
auto get_default(rmm::cuda_device_id id = device)
{
    return mr::get_per_device_resource_ref(id);
}
bool is_default(const rmmc::rapids_resource &resource)
{
    return rmm::device_async_resource_ref(
               const_cast<rmmc::rapids_resource &>(resource)) == get_default();
}
void reset_default()
{
    mr::reset_per_device_resource(device);
}
template <class T> void *allocate(T &&from, std::size_t bytes)
{
    return from.allocate(stream, bytes, 256);
}
template <class T> void deallocate(T &&from, void *ptr, std::size_t bytes)
{
    from.deallocate(stream, ptr, bytes, 256);
}
// A resource of RMM's own shape.
struct throwing_memory {
    std::string what;
    int *count;

    void *allocate(cuda::stream_ref, std::size_t, std::size_t);
    void deallocate(cuda::stream_ref, void *, std::size_t, std::size_t) noexcept
    {
    }
    void *allocate_sync(std::size_t bytes, std::size_t align)
    {
        return allocate(stream, bytes, align);
    }
    void deallocate_sync(void *, std::size_t, std::size_t) noexcept
    {
    }
    bool operator==(const throwing_memory &other) const noexcept
    {
        return what == other.what;
    }
    friend void
    get_property(const throwing_memory &, cuda::mr::device_accessible) noexcept
    {
    }
};
void *throwing_memory::allocate(cuda::stream_ref, std::size_t, std::size_t)
#else
using statistics_adaptor = mr::statistics_resource_adaptor<mr::device_memory_resource>;
using failure_adaptor = mr::failure_callback_resource_adaptor<
    mr::device_memory_resource, rmm::out_of_memory>;
using rmm_pool = mr::pool_memory_resource<mr::device_memory_resource>;
mr::device_memory_resource *given(mr::device_memory_resource &resource)
{
    return &resource;
}
void set_default(mr::device_memory_resource &resource, rmm::cuda_device_id id = device)
{
    mr::set_per_device_resource(id, &resource);
}
mr::device_memory_resource *get_default(rmm::cuda_device_id id = device)
{
    return mr::get_per_device_resource(id);
}
bool is_default(const rmmc::rapids_resource &resource)
{
    return get_default() == &resource;
}
void reset_default()
{
    mr::set_per_device_resource(device, mr::detail::initial_resource());
}
// The names of RMM up to 25.08, and those since.
template <class T>
auto allocate_by(T &from, std::size_t bytes, int)
    -> decltype(from.allocate(rmm::cuda_stream_view(stream), bytes))
{
    return from.allocate(rmm::cuda_stream_view(stream), bytes);
}
template <class T> void *allocate_by(T &from, std::size_t bytes, long)
{
    return from.allocate(bytes, rmm::cuda_stream_view(stream));
}
template <class T>
auto deallocate_by(T &from, void *ptr, std::size_t bytes, int)
    -> decltype(from.deallocate(rmm::cuda_stream_view(stream), ptr, bytes))
{
    from.deallocate(rmm::cuda_stream_view(stream), ptr, bytes);
}
template <class T> void deallocate_by(T &from, void *ptr, std::size_t bytes, long)
{
    from.deallocate(ptr, bytes, rmm::cuda_stream_view(stream));
}
void *allocate(mr::device_memory_resource &from, std::size_t bytes)
{
    return allocate_by(from, bytes, 0);
}
void deallocate(mr::device_memory_resource &from, void *ptr, std::size_t bytes)
{
    deallocate_by(from, ptr, bytes, 0);
}
struct throwing_memory : mr::device_memory_resource {
    throwing_memory(std::string text, int *counter)
        : what(std::move(text)), count(counter)
    {
    }
    std::string what;
    int *count;

  private:
    void *do_allocate(std::size_t, rmm::cuda_stream_view) override;
    void do_deallocate(void *, std::size_t, rmm::cuda_stream_view) noexcept override
    {
    }
};
void *throwing_memory::do_allocate(std::size_t, rmm::cuda_stream_view)
#endif
{
    ++*count;
    if (what == "out_of_memory") {
        throw rmm::out_of_memory("none left");
    }
    if (what == "bad_alloc") {
        throw rmm::bad_alloc("not today");
    }
    throw std::runtime_error(what);
}

rmmc::resource make_pool(std::size_t maximum_bytes = 0)
{
    rmmc::with_defaults<rmm_pool_options_t> options;

    options.initial_bytes = 1 << 20;
    options.maximum_bytes = maximum_bytes;
    return rmmc::pool_resource(rmmc::cuda_resource(), options);
}

std::uint64_t live(const rmmc::resource &resource)
{
    return resource.get_stats().current_count;
}

void rmm_allocates_from_our_pool()
{
    rmmc::resource pool = make_pool();
    rmmc::rapids_resource bridge(pool);

    set_default(bridge);
    CHECK(is_default(bridge));
    {
        rmm::device_buffer buffer(1000, stream, get_default());
        CHECK(buffer.data() != nullptr && buffer.size() == 1000);
        CHECK(live(pool) == 1 && pool.get_stats().current_bytes >= 1000);
        rmm::device_buffer empty(0, stream, get_default());
        CHECK(live(pool) == 1);
    }
    CHECK(live(pool) == 0 && pool.get_stats().invalid_free_count == 0);
    set_default(bridge); // once more: itself
    reset_default();
    CHECK(!is_default(bridge));
}

void equal_resources_are_equal()
{
    rmmc::resource pool = make_pool();
    rmmc::rapids_resource a(pool), b(pool.get()), other(make_pool());

#if RMM_CXX_RAPIDS_BY_VALUE
    void *page = a.allocate(stream, 100, 4096);
    CHECK(reinterpret_cast<std::uintptr_t>(page) % 4096 == 0);
    b.deallocate(stream, page, 100, 4096);
    a.deallocate_sync(a.allocate_sync(100), 100);
    CHECK(live(pool) == 0);
    CHECK(a == b && a != other);
    CHECK(rmm::device_async_resource_ref(a) == rmm::device_async_resource_ref(b));
    CHECK(rmm::device_async_resource_ref(a) != rmm::device_async_resource_ref(other));
#else
    CHECK(a.is_equal(b) && !a.is_equal(other));
    CHECK(!a.is_equal(*mr::get_per_device_resource(device)));
#endif
    CHECK(a.get() == pool);
}

template <class Exception, class Function> std::string thrown(Function &&function)
{
    try {
        function();
    } catch (const Exception &error) {
        return error.what();
    } catch (const std::exception &other) {
        return std::string("another: ") + other.what();
    }
    return "nothing";
}

void failures_are_exceptions_of_rmm()
{
    rmmc::rapids_resource bridge(make_pool(1 << 20));

#if RMM_CXX_RAPIDS_BY_VALUE
    CHECK(thrown<rmm::bad_alloc>([&] {
              (void)!bridge.allocate(stream, 100, 3);
          }).find("align") != std::string::npos);
    CHECK(thrown<rmm::out_of_memory>([&] {
              (void)!bridge.allocate_sync(1 << 30);
          }).find("another") == std::string::npos);
#endif
    std::string text =
        thrown<rmm::out_of_memory>([&] { allocate(bridge, std::size_t(1) << 30); });

    CHECK(text.find("another") == std::string::npos && text != "nothing");
    CHECK(text.find("pool") != std::string::npos);

    // memory that is aligned too little
    rmmc::callback_resource careless(
        [](std::size_t, rmmc::stream_view) { return reinterpret_cast<void *>(0x108); },
        [](void *, std::size_t, rmmc::stream_view) {});
    rmmc::rapids_resource refused(careless);
    auto request = [&] { allocate(refused, 100); };
    CHECK(thrown<rmm::out_of_memory>(request).find("another: std::bad_alloc: ") == 0);
    CHECK(thrown<rmm::bad_alloc>(request).find("align") != std::string::npos);
}

bool free_something(std::size_t, void *argument)
{
    auto *held = static_cast<std::unique_ptr<rmm::device_buffer> *>(argument);
    const bool again = *held != nullptr;

    held->reset();
    return again;
}

// RMM's adaptor catches rmm::out_of_memory only.
void rmm_retries_what_our_pool_refuses()
{
    rmmc::rapids_resource bridge(make_pool(1 << 20));
    auto held = std::make_unique<rmm::device_buffer>(1 << 20, stream, given(bridge));
    failure_adaptor adaptor(given(bridge), free_something, &held);

    void *ptr = allocate(adaptor, 1 << 20);
    CHECK(ptr != nullptr && held == nullptr);
    CHECK(thrown<rmm::out_of_memory>([&] {
              allocate(adaptor, 1 << 20);
          }).find("another") == std::string::npos);
    deallocate(adaptor, ptr, 1 << 20);
}

void exceptions_of_callbacks_pass()
{
    rmmc::callback_resource mine(
        [](std::size_t, rmmc::stream_view) -> void * {
            throw std::length_error("mine");
        },
        [](void *, std::size_t, rmmc::stream_view) {});
    rmmc::rapids_resource bridge(mine);

    CHECK(thrown<std::length_error>([&] { allocate(bridge, 1); }) == "mine");
}

void rmm_composes_over_our_resource()
{
    rmmc::resource pool = make_pool();
    {
        rmmc::rapids_resource bridge(pool);
        statistics_adaptor statistics(given(bridge));
        rmm_pool suballocator(given(statistics), 1 << 20, 4 << 20);
        CHECK(statistics.get_bytes_counter().value == 1 << 20);
        CHECK(pool.get_stats().current_bytes == 1 << 20);
    }
    CHECK(live(pool) == 0);
}

void memory_of_rmm_is_our_upstream()
{
    rmmc::resource bottom = rmmc::cuda_resource();
    const std::uint64_t before = live(bottom);
    {
        rmmc::rapids_resource bridge(bottom);
        statistics_adaptor statistics(given(bridge));
        rmmc::resource upstream = rmmc::from_rapids(given(statistics));
        CHECK(std::string(upstream.name()) == "rapids");
        rmmc::with_defaults<rmm_pool_options_t> options;
        options.initial_bytes = 1 << 20;
        rmmc::pool_resource pool(upstream, options);
        CHECK(statistics.get_bytes_counter().value == 1 << 20);
        rmmc::device_buffer buffer(1000, rmmc::stream_view(), pool);
        CHECK(live(bottom) == before + 1);
        buffer = rmmc::device_buffer();
        CHECK(upstream == rmmc::from_rapids(given(statistics)));
    }
    CHECK(live(bottom) == before);
}

rmm_status_t c_status(const rmmc::resource &resource)
{
    void *ptr = nullptr;

    return rmm_resource_alloc(resource.get(), 100, 0, nullptr, &ptr);
}

void exceptions_of_rmm_pass_our_pool()
{
    int count = 0;

    for (const char *what : {"out_of_memory", "bad_alloc", "anything"}) {
        throwing_memory memory{what, &count};
        rmmc::resource upstream = rmmc::from_rapids(given(memory));
        rmmc::pool_resource pool(upstream);
        const bool is_memory = std::string(what) == "out_of_memory";

        CHECK(
            c_status(upstream) ==
            (is_memory ? RMM_ERR_OUT_OF_MEMORY : RMM_ERR_BAD_ALLOC));
        auto request = [&] { (void)!pool.allocate(rmmc::stream_view(), 100); };
        if (is_memory) {
            const std::string text = thrown<rmm::out_of_memory>(request);
            CHECK(text.find("another") != 0 && text.find("none left") != text.npos);
        } else if (std::string(what) == "bad_alloc") {
            CHECK(thrown<rmm::bad_alloc>(request) == "std::bad_alloc: not today");
            CHECK(thrown<rmm::out_of_memory>(request).find("another") == 0);
        } else {
            CHECK(thrown<std::runtime_error>(request) == "anything");
        }
    }
    CHECK(count >= 6);
}

void resources_are_refused_that_no_device_can_use()
{
    CHECK(thrown<rmmc::invalid_argument>([] {
              rmmc::rapids_resource bridge{rmmc::host_resource()};
          }).find("accessible") != std::string::npos);
    CHECK(thrown<rmmc::invalid_argument>([] {
              rmmc::rapids_resource bridge{static_cast<rmm_resource_t *>(nullptr)};
          }) == "the resource is empty");
    rmmc::rapids_host_device_resource both{rmmc::pinned_resource()};
    rmm::host_device_async_resource_ref reference{both};
    (void)reference;
}

// The handle of the pool goes first; then the object goes that RMM has as its default.
void ends_in_any_order()
{
    rmm_resource_t *raw = make_pool().release();
    {
        rmmc::rapids_resource bridge(raw);
        rmm_resource_release(raw);
        set_default(bridge);
        rmm::device_buffer buffer(100, stream, get_default());
        CHECK(live(bridge.get()) == 1);
    }
#if RMM_CXX_RAPIDS_BY_VALUE // RMM has its own copy: the pool lives on
    rmm::device_buffer buffer(100, stream, get_default());
    reset_default(); // the buffer keeps the pool
#else
    CHECK(get_default() == mr::detail::initial_resource());
#endif
}

void threads_allocate_at_once()
{
    rmmc::resource pool = make_pool();
    rmmc::rapids_resource bridge(pool);
    std::vector<std::thread> threads;

    set_default(bridge);
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&bridge] {
            rmmc::rapids_resource copy(bridge);
            for (std::size_t k = 1; k < 5000; k++) {
                rmm::device_buffer buffer(k, stream, given(k % 2 ? bridge : copy));
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(live(pool) == 0);
    CHECK(is_default(bridge)); // the ends of copies change nothing
    reset_default();
}

void each_device_has_its_own()
{
    if (rmmc::device_count() < 2) { // a real GPU that is alone
        return;
    }
    rmmc::scoped_device second(1);
    rmmc::resource pool = make_pool();
    rmmc::rapids_resource bridge(pool);
    rmm::cuda_device_id id{1};

    CHECK(pool.device() == 1);
    set_default(bridge, id);
    rmm::device_buffer buffer(100, stream, get_default(id));
    CHECK(live(pool) == 1);
    CHECK(!is_default(bridge)); // that is of device 0
}

// Ends after main(), with the default still set: what RMM has and what it freed last.
void stays_until_the_process_exits()
{
    static rmmc::rapids_resource bridge(make_pool());
    set_default(bridge);
    static rmm::device_buffer buffer(100, stream, get_default());
    CHECK(live(bridge.get()) == 1);
}

} // namespace

int main()
{
    rmm_allocates_from_our_pool();
    equal_resources_are_equal();
    failures_are_exceptions_of_rmm();
    rmm_retries_what_our_pool_refuses();
    exceptions_of_callbacks_pass();
    rmm_composes_over_our_resource();
    memory_of_rmm_is_our_upstream();
    exceptions_of_rmm_pass_our_pool();
    resources_are_refused_that_no_device_can_use();
    ends_in_any_order();
    threads_allocate_at_once();
    each_device_has_its_own();
    stays_until_the_process_exits();
    std::printf("RMM %d.%02d: ok\n", RMM_VERSION_MAJOR, RMM_VERSION_MINOR);
}
