/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/detail/object_link.hpp
 *
 * The custom resource around an object of the program, of which the program passed the address.
 * The object has an object_link as its member, which ends with it; the custom resource may live
 * longer, as a default or as the upstream of another resource. Then it refuses requests. What keeps the
 * object's address itself can ask whether the object has ended.
 *
 * Threads: any. An object must not end while a call of it runs, as in RMM.
 */
#ifndef RMM_COMPAT_MR_DETAIL_OBJECT_LINK_HPP
#define RMM_COMPAT_MR_DETAIL_OBJECT_LINK_HPP

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include <rmm/cuda_stream_view.hpp>
#include <rmm/cxx/device.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/kept_resources.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{
namespace detail
{

/* The object's address, and NULL when it has ended. */
template <class Object> using object_place = std::shared_ptr<std::atomic<Object *>>;

/* What the custom resource keeps instead of the object. */
template <class Object> class linked_object
{
  public:
    explicit linked_object(object_place<Object> place) noexcept
        : place_(std::move(place))
    {
    }
    void *allocate(rmm_stream_t stream, std::size_t bytes, std::size_t)
    {
        /* acquire: pairs with ~object_link() */
        Object *object = place_->load(std::memory_order_acquire);

        RMM_EXPECTS(
            object != nullptr,
            "the resource has ended, but is a default or an upstream still");
        return object->allocate(bytes, cuda_stream_view(stream));
    }
    void deallocate(rmm_stream_t stream, void *ptr, std::size_t bytes, std::size_t)
    {
        Object *object = place_->load(std::memory_order_acquire); /* the same */

        if (object != nullptr) {
            object->deallocate(ptr, bytes, cuda_stream_view(stream));
        }
    }

  private:
    object_place<Object> place_;
};

template <class Object> class object_link
{
  public:
    object_link() = default;
    object_link(const object_link &) = delete;
    object_link &operator=(const object_link &) = delete;
    ~object_link()
    {
        if (place_ != nullptr) {
            place_->store(nullptr, std::memory_order_release);
        }
    }
    /* For the current device, always the same: an object may serve several. */
    rmmc::resource resource_over(Object &object)
    {
        const int device = rmmc::current_device();
        const std::lock_guard<std::mutex> guard(lock_);
        rmmc::resource &made = made_[device];

        if (!made) {
            made = wrap(linked_object<Object>(place_locked(object)), "custom");
        }
        return made;
    }
    object_place<Object> place_of(Object &object)
    {
        const std::lock_guard<std::mutex> guard(lock_);

        return place_locked(object);
    }

  private:
    const object_place<Object> &place_locked(Object &object)
    {
        if (place_ == nullptr) {
            place_ = std::make_shared<std::atomic<Object *>>(&object);
        }
        return place_;
    }

    std::mutex lock_; /* protects both below */
    object_place<Object> place_;
    std::map<int, rmmc::resource> made_; /* by device */
};

} /* namespace detail */
} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_DETAIL_OBJECT_LINK_HPP */
