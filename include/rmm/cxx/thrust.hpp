/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/thrust.hpp
 *
 * Thrust over resources: an allocator, device_vector with it, and policies for algorithms,
 * whose temporary memory then comes from a resource, on their stream. Needs Thrust, which is
 * in the CUDA toolkit, and a compiler for CUDA; for AMD GPUs rocThrust and a compiler for HIP.
 * rmm/rmm.hpp does not include it.
 *
 *     rmmc::device_vector<int> values(1000, 1);
 *     int sum = thrust::reduce(rmmc::exec_policy(stream, mr), values.begin(), values.end());
 *
 * Lifetime: an allocator, and so a vector and a policy, keeps a reference of its resource;
 * the stream must outlive them. An empty `resource` argument is the current device's. Memory is
 * allocated and freed with the device current that was current when the allocator was made: a
 * default stream is that of this device.
 *
 * Threads, exceptions: as rmm/cxx/resource.hpp.
 */
#ifndef RMM_CXX_THRUST_HPP
#define RMM_CXX_THRUST_HPP

#include <cstddef>
#include <utility>

#include <thrust/device_ptr.h>
#include <thrust/device_reference.h>
#include <thrust/device_vector.h>

#include <rmm/cxx/allocators.hpp>
#include <rmm/cxx/device.hpp>
#include <rmm/cxx/hip.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/cxx/stream.hpp>
#if RMM_CXX_HAS_HIP
#include <thrust/system/hip/execution_policy.h>
#else
#include <thrust/system/cuda/execution_policy.h>
#endif

namespace rmmc
{

/** Bound to a stream and a resource. Equal ones may free each other's memory. */
template <class T> class thrust_allocator
{
  public:
    using value_type = T;
    using pointer = thrust::device_ptr<T>;
    using const_pointer = thrust::device_ptr<const T>;
    using reference = thrust::device_reference<T>;
    using const_reference = thrust::device_reference<const T>;
    using size_type = std::size_t;
    using difference_type = typename pointer::difference_type;
    template <class U> struct rebind {
        using other = thrust_allocator<U>;
    };

    explicit thrust_allocator(
        stream_view stream = stream_view(), resource mr = resource())
        : stream_(stream), mr_(mr ? std::move(mr) : get_current_device_resource())
    {
    }
    /* No move: a vector that was moved from goes on with its allocator. */
    thrust_allocator(const thrust_allocator &) noexcept = default;
    thrust_allocator &operator=(const thrust_allocator &) noexcept = default;
    template <class U>
    thrust_allocator(const thrust_allocator<U> &other)
        : stream_(other.stream()), mr_(other.get_resource()), device_(other.device())
    {
    }

    pointer allocate(size_type count)
    {
        const scoped_device scope(device_);

        return pointer(static_cast<T *>(
            mr_.allocate(stream_, detail::bytes_of<T>(count), detail::align_of<T>)));
    }
    void deallocate(pointer ptr, size_type count) noexcept
    {
        const detail::device_of_free scope(device_);

        mr_.deallocate(stream_, ptr.get(), count * sizeof(T), detail::align_of<T>);
    }
    stream_view stream() const noexcept
    {
        return stream_;
    }
    const resource &get_resource() const noexcept
    {
        return mr_;
    }
    /** The device whose default streams are meant; -1: no GPU. */
    int device() const noexcept
    {
        return device_;
    }

  private:
    stream_view stream_;
    resource mr_;
    int device_ = detail::device_here();
};

template <class T, class U>
bool operator==(const thrust_allocator<T> &a, const thrust_allocator<U> &b) noexcept
{
    return a.get_resource() == b.get_resource();
}
template <class T, class U>
bool operator!=(const thrust_allocator<T> &a, const thrust_allocator<U> &b) noexcept
{
    return !(a == b);
}

/** A thrust::device_vector whose memory is a resource's. It initialises its elements. */
template <class T> using device_vector = thrust::device_vector<T, thrust_allocator<T>>;

namespace detail
{

#if RMM_CXX_HAS_HIP
namespace thrust_par = thrust::hip;
#else
namespace thrust_par = thrust::cuda;
#endif
using thrust_policy =
    decltype(thrust_par::par(thrust_allocator<char>()).on(native_of(nullptr)));
using thrust_nosync_policy =
    decltype(thrust_par::par_nosync(thrust_allocator<char>()).on(native_of(nullptr)));

} /* namespace detail */

/** For Thrust's algorithms, which wait for their stream where Thrust says so. */
class exec_policy : public detail::thrust_policy
{
  public:
    explicit exec_policy(stream_view view = stream_view(), resource mr = resource())
        : detail::thrust_policy(
              detail::thrust_par::par(thrust_allocator<char>(view, std::move(mr)))
                  .on(detail::native_of(view.value())))
    {
    }
};

/** The same, without waits that are not needed for a result. */
class exec_policy_nosync : public detail::thrust_nosync_policy
{
  public:
    explicit exec_policy_nosync(
        stream_view view = stream_view(), resource mr = resource())
        : detail::thrust_nosync_policy(detail::thrust_par::par_nosync(
                                           thrust_allocator<char>(view, std::move(mr)))
                                           .on(detail::native_of(view.value())))
    {
    }
};

} /* namespace rmmc */

#endif /* RMM_CXX_THRUST_HPP */
