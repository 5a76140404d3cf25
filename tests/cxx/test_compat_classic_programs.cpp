/* SPDX-License-Identifier: Apache-2.0 */
/* How well-known programs use RMM up to 26.04: classes over an upstream that they derive
 * themselves, resources by concept, factories, resources held in every kind of variable. */
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <rmm/aligned.hpp>
#include <rmm/cuda_stream_pool.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/device/aligned_resource_adaptor.hpp>
#include <rmm/mr/device/arena_memory_resource.hpp>
#include <rmm/mr/device/binning_memory_resource.hpp>
#include <rmm/mr/device/callback_memory_resource.hpp>
#include <rmm/mr/device/cuda_async_memory_resource.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/limiting_resource_adaptor.hpp>
#include <rmm/mr/device/managed_memory_resource.hpp>
#include <rmm/mr/device/owning_wrapper.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/mr/device/statistics_resource_adaptor.hpp>
#include <rmm/mr/device/tracking_resource_adaptor.hpp>
#include <rmm/mr/pinned_host_memory_resource.hpp>
#include <rmm/resource_ref.hpp>
#include <rmm/version_config.hpp>

#if RMM_VERSION_MAJOR == 0 && RMM_VERSION_MINOR < 18
#error "XGBoost refuses these headers"
#endif

namespace
{

using rmm::mr::device_memory_resource;

constexpr std::size_t mib = std::size_t(1) << 20;

/* cuDF for Java: a base class with functions of its own, and a template over it. */
class base_tracking_adaptor : public device_memory_resource
{
  public:
    virtual std::size_t get_total_allocated() = 0;
};

template <typename Upstream> class tracking_adaptor final : public base_tracking_adaptor
{
  public:
    tracking_adaptor(Upstream *mr, std::size_t size_alignment)
        : resource{mr}, size_align{size_alignment}
    {
    }
    std::size_t get_total_allocated() override
    {
        return total_allocated.load();
    }
    bool supports_get_mem_info() const noexcept override
    {
        return resource->supports_get_mem_info();
    }
    bool supports_streams() const noexcept override
    {
        return resource->supports_streams();
    }

  private:
    Upstream *const resource;
    std::size_t const size_align;
    std::atomic_size_t total_allocated{0};

    void *do_allocate(std::size_t num_bytes, rmm::cuda_stream_view stream) override
    {
        num_bytes = (num_bytes + size_align - 1) / size_align * size_align;
        auto result = resource->allocate(num_bytes, stream);
        total_allocated += num_bytes;
        return result;
    }
    void do_deallocate(void *p, std::size_t size, rmm::cuda_stream_view stream) override
    {
        size = (size + size_align - 1) / size_align * size_align;
        resource->deallocate(p, size, stream);
        total_allocated -= size;
    }
    std::pair<size_t, size_t>
    do_get_mem_info(rmm::cuda_stream_view stream) const override
    {
        return resource->get_mem_info(stream);
    }
};

/* The same: a class that retries, and one derived from it that calls its functions. */
class event_handler : public device_memory_resource
{
  public:
    event_handler(device_memory_resource *wrapped, base_tracking_adaptor *with)
        : resource(wrapped), tracker(with)
    {
    }
    virtual ~event_handler() = default;

    int retries = 0;

  protected:
    void *do_allocate(std::size_t num_bytes, rmm::cuda_stream_view stream) override
    {
        while (true) {
            try {
                return resource->allocate(num_bytes, stream);
            } catch (rmm::out_of_memory const &) {
                if (++retries == 3) {
                    throw;
                }
            }
        }
    }
    void do_deallocate(void *p, std::size_t size, rmm::cuda_stream_view stream) override
    {
        resource->deallocate(p, size, stream);
    }
    device_memory_resource *const resource;
    base_tracking_adaptor *const tracker;
};

class debug_event_handler final : public event_handler
{
  public:
    using event_handler::event_handler;
    int calls = 0;

  private:
    void *do_allocate(std::size_t num_bytes, rmm::cuda_stream_view stream) override
    {
        calls++;
        return event_handler::do_allocate(num_bytes, stream);
    }
    void do_deallocate(void *p, std::size_t size, rmm::cuda_stream_view stream) override
    {
        event_handler::do_deallocate(p, size, stream);
        calls++;
    }
};

/* RAFT: copied and moved, without state. */
class pinned_resource final : public device_memory_resource
{
  public:
    pinned_resource() = default;
    ~pinned_resource() override = default;
    pinned_resource(pinned_resource const &) = default;
    pinned_resource(pinned_resource &&) = default;
    pinned_resource &operator=(pinned_resource const &) = default;
    pinned_resource &operator=(pinned_resource &&) = default;
    [[nodiscard]] bool supports_streams() const noexcept override
    {
        return false;
    }
    [[nodiscard]] bool supports_get_mem_info() const noexcept override
    {
        return true;
    }

  private:
    void *do_allocate(std::size_t bytes, rmm::cuda_stream_view) override
    {
        if (bytes == 0) {
            return nullptr;
        }
        return rmm::mr::pinned_host_memory_resource().allocate_sync(bytes);
    }
    void do_deallocate(void *ptr, std::size_t bytes, rmm::cuda_stream_view) override
    {
        rmm::mr::pinned_host_memory_resource().deallocate_sync(ptr, bytes);
    }
    [[nodiscard]] bool
    do_is_equal(device_memory_resource const &other) const noexcept override
    {
        return dynamic_cast<pinned_resource const *>(&other) != nullptr;
    }
    [[nodiscard]] std::pair<size_t, size_t>
    do_get_mem_info(rmm::cuda_stream_view) const override
    {
        return {1, 1};
    }
};

/* RAPIDS-MPF: references, the second of which is asked when the first has no memory. */
class fallback_adaptor final : public device_memory_resource
{
  public:
    fallback_adaptor(
        rmm::device_async_resource_ref primary,
        std::optional<rmm::device_async_resource_ref> fallback = std::nullopt)
        : primary_mr_{primary}, fallback_mr_{fallback}
    {
    }
    [[nodiscard]] rmm::device_async_resource_ref get_upstream_resource() const noexcept
    {
        return primary_mr_;
    }
    std::size_t from_fallback = 0;

  private:
    void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override
    {
        try {
            return primary_mr_.allocate_async(
                bytes, rmm::CUDA_ALLOCATION_ALIGNMENT, stream);
        } catch (rmm::out_of_memory const &) {
            if (!fallback_mr_.has_value()) {
                throw;
            }
            from_fallback++;
            return fallback_mr_->allocate(stream, bytes);
        }
    }
    void
    do_deallocate(void *ptr, std::size_t bytes, rmm::cuda_stream_view stream) override
    {
        rmm::device_async_resource_ref &owner =
            bytes < mib ? primary_mr_ : *fallback_mr_;

        owner.deallocate_async(ptr, bytes, stream);
    }
    [[nodiscard]] bool
    do_is_equal(device_memory_resource const &other) const noexcept override
    {
        auto cast = dynamic_cast<fallback_adaptor const *>(&other);

        return cast != nullptr &&
               get_upstream_resource() == cast->get_upstream_resource() &&
               fallback_mr_ == cast->fallback_mr_;
    }

    rmm::device_async_resource_ref primary_mr_;
    std::optional<rmm::device_async_resource_ref> fallback_mr_;
};

#if RMM_COMPAT_HAS_STREAM_REF
using stream_of_concept = cuda::stream_ref;
#else
using stream_of_concept = rmm::cuda_stream_view;
#endif

/* cuDF: a class by concept, with the names of RMM 24.02 to 25.10. */
class pinned_pool_by_concept
{
  public:
    void *allocate_async(std::size_t bytes, std::size_t, stream_of_concept stream)
    {
        live++;
        return pool_.allocate(bytes, rmm::cuda_stream_view(stream));
    }
    void *allocate_async(std::size_t bytes, stream_of_concept stream)
    {
        return allocate_async(bytes, alignof(std::max_align_t), stream);
    }
    void deallocate_async(
        void *ptr, std::size_t bytes, std::size_t, stream_of_concept stream) noexcept
    {
        live--;
        pool_.deallocate(ptr, bytes, rmm::cuda_stream_view(stream));
    }
    void *allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t))
    {
        return allocate_async(bytes, alignment, rmm::cuda_stream_view());
    }
    void deallocate(
        void *ptr, std::size_t bytes,
        std::size_t alignment = alignof(std::max_align_t)) noexcept
    {
        deallocate_async(ptr, bytes, alignment, rmm::cuda_stream_view());
    }
    bool operator==(pinned_pool_by_concept const &other) const
    {
        return this == &other;
    }
    bool operator!=(pinned_pool_by_concept const &other) const
    {
        return !operator==(other);
    }
    friend void
    get_property(pinned_pool_by_concept const &, cuda::mr::device_accessible) noexcept
    {
    }
    friend void
    get_property(pinned_pool_by_concept const &, cuda::mr::host_accessible) noexcept
    {
    }
    int live = 0;

  private:
    rmm::mr::pinned_host_memory_resource upstream_;
    rmm::mr::pool_memory_resource<rmm::mr::pinned_host_memory_resource> pool_{
        &upstream_, mib};
};

/* One with the names of 25.12 and newer. */
struct newest_by_concept {
    int live = 0;

    void *allocate(
        stream_of_concept stream, std::size_t bytes,
        std::size_t = rmm::CUDA_ALLOCATION_ALIGNMENT)
    {
        live++;
        return rmm::mr::cuda_memory_resource().allocate(
            rmm::cuda_stream_view(stream), bytes);
    }
    void deallocate(
        stream_of_concept stream, void *ptr, std::size_t bytes,
        std::size_t = rmm::CUDA_ALLOCATION_ALIGNMENT) noexcept
    {
        live--;
        rmm::mr::cuda_memory_resource().deallocate(
            rmm::cuda_stream_view(stream), ptr, bytes);
    }
    void *allocate_sync(
        std::size_t bytes, std::size_t alignment = rmm::CUDA_ALLOCATION_ALIGNMENT)
    {
        return allocate(rmm::cuda_stream_view(), bytes, alignment);
    }
    void deallocate_sync(
        void *ptr, std::size_t bytes,
        std::size_t alignment = rmm::CUDA_ALLOCATION_ALIGNMENT) noexcept
    {
        deallocate(rmm::cuda_stream_view(), ptr, bytes, alignment);
    }
    bool operator==(newest_by_concept const &other) const noexcept
    {
        return this == &other;
    }
    bool operator!=(newest_by_concept const &other) const noexcept
    {
        return this != &other;
    }
    friend constexpr void
    get_property(newest_by_concept const &, cuda::mr::device_accessible) noexcept
    {
    }
};

/* XLA, Velox: memory that is there already, handed out from the front. */
class bump_resource : public device_memory_resource
{
  public:
    bump_resource(void *base, std::size_t capacity)
        : base_(static_cast<char *>(base)), capacity_(capacity)
    {
    }
    void *do_allocate(std::size_t bytes, rmm::cuda_stream_view) override
    {
        const std::size_t aligned = rmm::align_up(bytes, 256);

        if (offset_ + aligned > capacity_) {
            throw rmm::bad_alloc("the buffer is exhausted");
        }
        return base_ + std::exchange(offset_, offset_ + aligned);
    }
    void do_deallocate(void *, std::size_t, rmm::cuda_stream_view) override
    {
    }

  private:
    char *base_;
    std::size_t capacity_, offset_ = 0;
};

/* cuDF's benchmarks. */
inline auto make_cuda()
{
    return std::make_shared<rmm::mr::cuda_memory_resource>();
}
inline auto make_pool()
{
    return rmm::mr::make_owning_wrapper<rmm::mr::pool_memory_resource>(
        make_cuda(), mib);
}
inline auto make_managed_pool()
{
    return rmm::mr::make_owning_wrapper<rmm::mr::pool_memory_resource>(
        std::make_shared<rmm::mr::managed_memory_resource>(),
        rmm::percent_of_free_device_memory(10));
}
inline auto make_arena()
{
    return rmm::mr::make_owning_wrapper<rmm::mr::arena_memory_resource>(
        make_cuda(), 16 * mib);
}
inline auto make_binning()
{
    auto pool = make_pool();
    auto mr = rmm::mr::make_owning_wrapper<rmm::mr::binning_memory_resource>(pool);

    for (std::size_t i = 10; i <= 12; i++) {
        mr->wrapped().add_bin(1 << i);
    }
    return mr;
}

class memory_stats_logger
{
  public:
    memory_stats_logger()
        : existing_mr(rmm::mr::get_current_device_resource()),
          statistics_mr(rmm::mr::statistics_resource_adaptor(existing_mr))
    {
        rmm::mr::set_current_device_resource(&statistics_mr);
    }
    ~memory_stats_logger()
    {
        rmm::mr::set_current_device_resource(existing_mr);
    }
    [[nodiscard]] std::size_t peak_memory_usage() const noexcept
    {
        return static_cast<std::size_t>(statistics_mr.get_bytes_counter().peak);
    }

  private:
    device_memory_resource *existing_mr;
    rmm::mr::statistics_resource_adaptor<device_memory_resource> statistics_mr;
};

/* cuDF 0.15: resource and stream are parameters with defaults. */
std::size_t
size_of_copy(std::size_t bytes, device_memory_resource *mr, cudaStream_t stream = 0)
{
    rmm::device_buffer source{bytes, stream, mr};
    rmm::device_buffer copy{source, stream, mr};
    rmm::device_buffer of_pointer(source.data(), source.size(), stream, mr);

    return copy.size() + of_pointer.size();
}

void *
use_host_device(rmm::host_device_async_resource_ref ref, rmm::cuda_stream_view stream)
{
    void *p = ref.allocate_async(100, 16, stream);

    ref.deallocate_async(p, 100, 16, stream);
    p = ref.allocate(100);
    ref.deallocate(p, 100);
    return p;
}

} /* namespace */

CASE(cudf_for_java_retries_and_tracks)
{
    auto initial = std::make_unique<rmm::mr::cuda_memory_resource>();
    auto limited =
        std::make_unique<rmm::mr::limiting_resource_adaptor<device_memory_resource>>(
            initial.get(), mib);
    auto tracker = std::unique_ptr<base_tracking_adaptor>(
        new tracking_adaptor<device_memory_resource>(limited.get(), 512));
    debug_event_handler handler(tracker.get(), tracker.get());

    device_memory_resource *previous = rmm::mr::set_current_device_resource(&handler);
    {
        rmm::device_buffer b(100, rmm::cuda_stream_default);
        CHECK(tracker->get_total_allocated() == 512);
        THROWS(
            rmm::out_of_memory, rmm::device_buffer(2 * mib, rmm::cuda_stream_default));
    }
    CHECK(
        tracker->get_total_allocated() == 0 && handler.calls == 3 &&
        handler.retries == 3);
    CHECK(rmm::mr::set_current_device_resource(previous) == &handler);
}

CASE(cudf_for_java_passes_resources_as_numbers)
{
    using jlong = std::int64_t;
    using jboolean = std::uint8_t;
    const auto cast = [](jlong handle) {
        return reinterpret_cast<device_memory_resource *>(handle);
    };
    const jlong init = 1 << 23, max = 1 << 24;
    const auto cuda = reinterpret_cast<jlong>(new rmm::mr::cuda_memory_resource());
    const auto managed =
        reinterpret_cast<jlong>(new rmm::mr::managed_memory_resource());
    const auto async =
        reinterpret_cast<jlong>(new rmm::mr::cuda_async_memory_resource(init, max));
    const auto pool = reinterpret_cast<jlong>(
        new rmm::mr::pool_memory_resource<device_memory_resource>(
            cast(cuda), init, max));
    const auto arena = reinterpret_cast<jlong>(
        new rmm::mr::arena_memory_resource<device_memory_resource>(
            cast(managed), init, jboolean(1)));
    const auto limiting = reinterpret_cast<jlong>(
        new rmm::mr::limiting_resource_adaptor<device_memory_resource>(
            cast(arena), max, 512));

    for (jlong handle : {cuda, managed, async, pool, arena, limiting}) {
        rmm::mr::set_current_device_resource(cast(handle));
        rmm::device_buffer b(100, rmm::cuda_stream_default);
        CHECK(b.data() != nullptr);
        CHECK(rmm::mr::set_current_device_resource(nullptr) == cast(handle));
    }
    CHECK(
        dynamic_cast<rmm::mr::arena_memory_resource<device_memory_resource> *>(
            cast(arena)) != nullptr);
    for (jlong handle : {limiting, arena, pool, async, managed, cuda}) {
        delete cast(handle);
    }
}

CASE(raft_holds_resources_by_shared_pointers)
{
    std::shared_ptr<device_memory_resource> upstream(
        rmm::mr::get_current_device_resource(), [](device_memory_resource *) {});
    auto workspace =
        std::make_shared<rmm::mr::limiting_resource_adaptor<device_memory_resource>>(
            upstream.get(), mib);
    std::shared_ptr<device_memory_resource> erased = workspace;
    auto pool = std::make_shared<rmm::mr::pool_memory_resource<device_memory_resource>>(
        erased.get(), mib / 2);

    CHECK(dynamic_cast<rmm::mr::cuda_memory_resource *>(upstream.get()) != nullptr);
    CHECK(
        dynamic_cast<rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> *>(
            upstream.get()) == nullptr);
    CHECK(
        std::dynamic_pointer_cast<
            rmm::mr::limiting_resource_adaptor<device_memory_resource>>(erased) ==
        workspace);
    CHECK(workspace->get_upstream() == upstream.get());
    CHECK(workspace->get_allocated_bytes() == mib / 2);
    CHECK(workspace->get_allocation_limit() == mib);
    rmm::device_uvector<float> v(100, rmm::cuda_stream_default, pool.get());
    rmm::device_uvector<float> w(100, rmm::cuda_stream_default, *pool);
    CHECK(v.memory_resource() == w.memory_resource());
}

CASE(a_resource_is_copied_and_moved)
{
    pinned_resource one, two(one), three(std::move(one));
    rmm::mr::cuda_memory_resource cuda, other(cuda);

    two = three;
    three = pinned_resource();
    other = cuda;
    CHECK(two == three && two.is_equal(three) && other == cuda && !(two == cuda));
    const rmm::device_buffer b(100, rmm::cuda_stream_default, &two);
    rmm::mr::set_current_device_resource(&two);
    CHECK(rmm::mr::get_current_device_resource() == &two);
    rmm::mr::set_current_device_resource(nullptr);
}

CASE(references_fall_back)
{
    rmm::mr::cuda_memory_resource cuda;
    rmm::mr::limiting_resource_adaptor<rmm::mr::cuda_memory_resource> limited(
        &cuda, mib);
    rmm::mr::managed_memory_resource managed;
    fallback_adaptor none(&limited),
        both(limited, rmm::device_async_resource_ref(managed));
    rmm::device_buffer small(100, rmm::cuda_stream_default, both);
    rmm::device_buffer large(2 * mib, rmm::cuda_stream_default, both);

    CHECK(both.from_fallback == 1 && both == both && !(none == both));
    THROWS(
        rmm::out_of_memory,
        rmm::device_buffer(2 * mib, rmm::cuda_stream_default, &none));
    std::vector<rmm::device_async_resource_ref> all{cuda, &cuda, limited};
    all[0] = all[2];
    CHECK(all[0] == all[2] && all[1] != all[2] && all[1] == &cuda);
    CHECK(rmm::to_device_async_resource_ref_checked(&cuda) == all[1]);
    device_memory_resource *no_resource = nullptr;
    THROWS(rmm::logic_error, rmm::to_device_async_resource_ref_checked(no_resource));
}

CASE(pinned_pools_are_host_and_device_memory)
{
    const rmm::cuda_stream stream;
    rmm::mr::pinned_host_memory_resource pinned;
    rmm::mr::pool_memory_resource<rmm::mr::pinned_host_memory_resource> pool(
        &pinned, mib);
    pinned_pool_by_concept by_concept;

    CHECK(use_host_device(pinned, stream) != nullptr);
    CHECK(use_host_device(&pool, stream) != nullptr);
    CHECK(use_host_device(by_concept, stream) != nullptr);
    rmm::host_async_resource_ref host{pool};
    rmm::host_device_async_resource_ref *pointer = nullptr;
    static rmm::host_device_async_resource_ref current{pool};
    pointer = &current;
    current = rmm::host_device_async_resource_ref{by_concept};
    CHECK(*pointer == by_concept && host == rmm::host_async_resource_ref(pool));
    {
        rmm::device_buffer b(100, stream, by_concept);
        rmm::device_uvector<char> v(
            100, stream, rmm::device_async_resource_ref{current});
        CHECK(by_concept.live == 2);
    }
    CHECK(by_concept.live == 0);
}

CASE(a_class_by_concept_is_an_upstream_and_a_default)
{
    newest_by_concept mr;
    {
        rmm::mr::set_current_device_resource_ref(mr);
        CHECK(rmm::mr::get_current_device_resource_ref() == mr);
        CHECK(rmm::mr::get_current_device_resource() == nullptr); /* is none */
        rmm::device_buffer b(100, rmm::cuda_stream_default);
        CHECK(mr.live == 1);
        rmm::mr::reset_current_device_resource_ref();
    }
    {
        rmm::mr::pool_memory_resource<newest_by_concept> pool(&mr, mib);
        rmm::device_buffer b(100, rmm::cuda_stream_default, &pool);
        CHECK(mr.live == 1);
        CHECK(pool.get_upstream_resource() == mr);
    }
    CHECK(mr.live == 0);
}

CASE(memory_that_is_there_is_handed_out)
{
    rmm::device_buffer storage(1024, rmm::cuda_stream_default);
    bump_resource mr(storage.data(), storage.size());
    rmm::device_buffer first(100, rmm::cuda_stream_default, &mr);
    rmm::device_buffer second(100, rmm::cuda_stream_default, &mr);

    CHECK(first.data() == storage.data() && second.data() != first.data());
    THROWS(rmm::bad_alloc, rmm::device_buffer(1024, rmm::cuda_stream_default, &mr));
    rmm::mr::statistics_resource_adaptor<bump_resource> over(&mr);
    THROWS(rmm::bad_alloc, rmm::device_buffer(1024, rmm::cuda_stream_default, &over));
}

CASE(factories_make_every_resource)
{
    const std::map<
        std::string, std::function<std::shared_ptr<device_memory_resource>()>>
        factories{
            {"cuda", &make_cuda},
            {"pool", &make_pool},
            {"managed", &make_managed_pool},
            {"arena", &make_arena},
            {"binning", &make_binning},
            {"async", [] {
                 return std::make_shared<rmm::mr::cuda_async_memory_resource>(
                     rmm::percent_of_free_device_memory(10));
             }}};

    for (const auto &[name, make] : factories) {
        auto mr = make();
        rmm::mr::set_current_device_resource(mr.get());
        const memory_stats_logger stats;
        {
            rmm::device_buffer b(1000, rmm::cuda_stream_default);
            CHECK(b.data() != nullptr);
        }
        CHECK(stats.peak_memory_usage() == 1000);
    }
    rmm::mr::set_current_device_resource(nullptr);
}

/* cuML for C */
namespace thrust_like
{
template <class T> class optional
{
  public:
    optional() = default;
    explicit optional(T value) : value_(value), has_value_(true)
    {
    }
    bool has_value() const
    {
        return has_value_;
    }
    const T &value() const
    {
        return value_;
    }

  private:
    T value_ = T();
    bool has_value_ = false;
};
} /* namespace thrust_like */

CASE(sizes_of_a_pool_are_optionals_of_every_kind)
{
    using thrust_like::optional;
    rmm::mr::cuda_memory_resource cuda;
    const std::optional<std::size_t> none;
    auto mr = std::make_unique<rmm::mr::pool_memory_resource<device_memory_resource>>(
        rmm::mr::get_current_device_resource(), optional<std::size_t>(mib),
        optional<std::size_t>(2 * mib));
    const rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> of_none(
        &cuda, optional<std::size_t>(mib), optional<std::size_t>()),
        of_std(&cuda, std::optional<int>(1 << 20), none), of_braces{&cuda, 1 << 20, {}},
        of_null(&cuda, mib, std::nullopt);

    CHECK(mr->pool_size() == mib && of_none.pool_size() == mib);
    CHECK(of_std.pool_size() == mib && of_braces.pool_size() == mib);
    CHECK(of_null.pool_size() == mib);
    THROWS(rmm::out_of_memory, mr->allocate(3 * mib));
}

CASE(memory_of_the_device_is_told)
{
    rmm::mr::cuda_memory_resource cuda;
    rmm::mr::managed_memory_resource managed;
    const auto [free, total] = cuda.get_mem_info(rmm::cuda_stream_default);

    CHECK(cuda.supports_get_mem_info() && managed.supports_get_mem_info());
    CHECK(free > 0 && free <= total && total == rmm::available_device_memory().second);
}

CASE(hugectr_keeps_a_pool_for_each_device)
{
    using dmmr = device_memory_resource;
    std::vector<std::shared_ptr<rmm::mr::cuda_memory_resource>> base_cuda_mr_;
    std::vector<std::shared_ptr<rmm::mr::pool_memory_resource<dmmr>>> memory_resource_;
    std::vector<device_memory_resource *> original;

    for (int id : {0, 1}) {
        const rmm::cuda_set_device_raii device(rmm::cuda_device_id{id});
        original.push_back(rmm::mr::get_current_device_resource());
        base_cuda_mr_.emplace_back(std::shared_ptr<rmm::mr::cuda_memory_resource>(
            new rmm::mr::cuda_memory_resource()));
        memory_resource_.emplace_back(
            std::shared_ptr<rmm::mr::pool_memory_resource<dmmr>>(
                new rmm::mr::pool_memory_resource<dmmr>(
                    base_cuda_mr_.back().get(), static_cast<std::size_t>(1 << 20))));
        rmm::mr::set_current_device_resource(memory_resource_.back().get());
    }
    for (int id : {0, 1}) {
        const rmm::cuda_set_device_raii device(rmm::cuda_device_id{id});
        rmm::device_buffer b(100, rmm::cuda_stream_default);
        CHECK(
            rmm::mr::set_current_device_resource(
                original[static_cast<std::size_t>(id)]) ==
            memory_resource_[static_cast<std::size_t>(id)].get());
    }
}

CASE(resources_are_parameters_with_defaults)
{
    rmm::mr::cuda_memory_resource cuda;
    rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool(
        &cuda, 2 * (1ULL << 20));
    device_memory_resource *const mr = &pool;

    CHECK(size_of_copy(100, rmm::mr::get_current_device_resource()) == 200);
    CHECK(size_of_copy(100, &pool) == 200);
    CHECK(size_of_copy(100, mr, cudaStreamPerThread) == 200);
    CHECK(pool.pool_size() == 2 * mib);
}

CASE(streams_are_compared_and_printed)
{
    std::ostringstream out;
    rmm::cuda_stream_pool streams(2);
    const auto stream = rmm::cuda_stream_default;
    cudaStream_t handle = stream.value();

    CHECK(
        stream == handle && handle == stream && stream != rmm::cuda_stream_per_thread);
    CHECK(rmm::cuda_stream_view(handle).is_default());
    CHECK(streams.get_stream(0) != streams.get_stream(1));
    CHECK(streams.get_stream(0).value() != nullptr);
    out << rmm::cuda_stream_legacy;
    CHECK(!out.str().empty());
}

CASE(callbacks_are_a_resource)
{
    int live = 0;
    rmm::mr::cuda_memory_resource cuda;
    rmm::mr::callback_memory_resource mr(
        [&](std::size_t bytes, rmm::cuda_stream_view stream, void *arg) {
            ++*static_cast<int *>(arg);
            return cuda.allocate(bytes, stream);
        },
        [&](void *p, std::size_t bytes, rmm::cuda_stream_view stream, void *arg) {
            --*static_cast<int *>(arg);
            cuda.deallocate(p, bytes, stream);
        },
        &live, &live);
    {
        rmm::device_buffer b(100, rmm::cuda_stream_default, &mr);
        CHECK(live == 1);
    }
    CHECK(live == 0);
}
