/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/owning_wrapper.hpp
 *
 * A resource together with the upstreams that it needs, which it owns:
 *
 *     auto cuda = std::make_shared<rmm::mr::cuda_memory_resource>();
 *     auto pool = rmm::mr::make_owning_wrapper<rmm::mr::pool_memory_resource>(cuda, initial);
 *
 * The resource ends before its upstreams. Threads: as the resource.
 */
#ifndef RMM_COMPAT_MR_OWNING_WRAPPER_HPP
#define RMM_COMPAT_MR_OWNING_WRAPPER_HPP

#include <cstddef>
#include <memory>
#include <tuple>
#include <utility>

#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/device_memory_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

template <class Resource, class... Upstreams>
class owning_wrapper : public device_memory_resource
{
  public:
    using upstream_tuple = std::tuple<std::shared_ptr<Upstreams>...>;

    /** Creates the resource from the addresses of the upstreams, and the arguments. */
    template <class... Arguments>
    explicit owning_wrapper(upstream_tuple upstreams, Arguments &&...arguments)
        : upstreams_(std::move(upstreams)),
          wrapped_(std::apply(
              [&](const auto &...upstream) {
                  return std::make_unique<Resource>(
                      upstream.get()..., std::forward<Arguments>(arguments)...);
              },
              upstreams_))
    {
    }
    [[nodiscard]] const Resource &wrapped() const noexcept
    {
        return *wrapped_;
    }
    [[nodiscard]] Resource &wrapped() noexcept
    {
        return *wrapped_;
    }
    [[nodiscard]] bool supports_streams() const noexcept override
    {
        return wrapped().supports_streams();
    }
    [[nodiscard]] bool supports_get_mem_info() const noexcept override
    {
        return wrapped().supports_get_mem_info();
    }
    /** Not in RMM: the resource of this library, that of the wrapped one. */
    [[nodiscard]] rmmc::resource library() override
    {
        return wrapped().library();
    }

  private:
    void *do_allocate(std::size_t bytes, cuda_stream_view stream) override
    {
        return wrapped().allocate(bytes, stream);
    }
    void do_deallocate(void *ptr, std::size_t bytes, cuda_stream_view stream) override
    {
        wrapped().deallocate(ptr, bytes, stream);
    }
    [[nodiscard]] bool
    do_is_equal(const device_memory_resource &other) const noexcept override
    {
        const auto *same = dynamic_cast<const owning_wrapper *>(&other);

        return this == &other ||
               wrapped().is_equal(same != nullptr ? same->wrapped() : other);
    }
    [[nodiscard]] std::pair<std::size_t, std::size_t>
    do_get_mem_info(cuda_stream_view stream) const override
    {
        return wrapped().get_mem_info(stream);
    }

    upstream_tuple upstreams_; /* ends after wrapped_ */
    std::unique_ptr<Resource> wrapped_;
};

/** @tparam Resource a class template over these upstreams */
template <template <class...> class Resource, class... Upstreams, class... Arguments>
auto make_owning_wrapper(
    std::tuple<std::shared_ptr<Upstreams>...> upstreams, Arguments &&...arguments)
{
    return std::make_shared<owning_wrapper<Resource<Upstreams...>, Upstreams...>>(
        std::move(upstreams), std::forward<Arguments>(arguments)...);
}
template <template <class...> class Resource, class Upstream, class... Arguments>
auto make_owning_wrapper(std::shared_ptr<Upstream> upstream, Arguments &&...arguments)
{
    return make_owning_wrapper<Resource>(
        std::make_tuple(std::move(upstream)), std::forward<Arguments>(arguments)...);
}

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_OWNING_WRAPPER_HPP */
