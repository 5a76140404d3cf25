/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/device_scalar.hpp
 *
 * One value in device memory. Lifetime, stream order, threads: as rmm/device_uvector.hpp.
 */
#ifndef RMM_COMPAT_DEVICE_SCALAR_HPP
#define RMM_COMPAT_DEVICE_SCALAR_HPP

#include <cstring>
#include <utility>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/exec_check_disable.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/resource_ref.hpp>

namespace RMM_NAMESPACE
{

template <class T> class device_scalar
{
    using array = device_uvector<T>;

  public:
    using value_type = typename array::value_type;
    using size_type = typename array::size_type;
    using reference = typename array::reference;
    using const_reference = typename array::const_reference;
    using pointer = typename array::pointer;
    using const_pointer = typename array::const_pointer;

#if RMM_COMPAT_CLASSIC
    /** Until RMM 0.18: uninitialised. */
    device_scalar() : device_scalar(cuda_stream_view())
    {
    }
#else
    device_scalar() = delete;
#endif
    /** Uninitialised. */
    explicit device_scalar(
        cuda_stream_view stream,
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : storage_(1, stream, std::move(mr))
    {
    }
    /** @param initial_value must stay valid until the stream has copied it */
    explicit device_scalar(
        const T &initial_value,
        cuda_stream_view stream RMM_COMPAT_CLASSIC_DEFAULT(cuda_stream_view()),
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : storage_(1, stream, std::move(mr))
    {
        set_value_async(initial_value, stream);
    }
    /** With a temporary, device_scalar<int>(7, stream): waits for the stream, but not for a value
     * whose bytes are all the same, as those of 0, -1 and true are. */
    explicit device_scalar(
        T &&initial_value,
        cuda_stream_view stream RMM_COMPAT_CLASSIC_DEFAULT(cuda_stream_view()),
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : storage_(1, stream, std::move(mr))
    {
        set_to_temporary(initial_value, stream);
    }
    device_scalar(
        const device_scalar &other,
        cuda_stream_view stream RMM_COMPAT_CLASSIC_DEFAULT(cuda_stream_view()),
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : storage_(other.storage_, stream, std::move(mr))
    {
    }
    RMM_EXEC_CHECK_DISABLE
    device_scalar(device_scalar &&) noexcept = default;
    device_scalar &operator=(device_scalar &&) noexcept = default;
#if !RMM_COMPAT_CLASSIC /* where that with a stream copies */
    device_scalar(const device_scalar &) = delete;
#endif
    device_scalar &operator=(const device_scalar &) = delete;
    RMM_EXEC_CHECK_DISABLE
    ~device_scalar() = default;

    /** Waits for the stream. */
    [[nodiscard]] value_type
    value(cuda_stream_view stream RMM_COMPAT_CLASSIC_DEFAULT(cuda_stream_view())) const
    {
        return storage_.front_element(stream);
    }
    void set_value_async(const T &value, cuda_stream_view stream)
    {
        storage_.set_element_async(0, value, stream);
    }
    /** A temporary would not live until the stream has copied it. */
    void set_value_async(const T &&, cuda_stream_view) = delete;
#if RMM_COMPAT_CLASSIC
    /** Until RMM 0.18: the value is read before the call returns. */
    void set_value(const T &value, cuda_stream_view stream = cuda_stream_view())
    {
        set_to_temporary(value, stream);
    }
    void set_value_zero(cuda_stream_view stream = cuda_stream_view())
    {
        set_value_to_zero_async(stream);
    }
#endif
    void set_value_to_zero_async(cuda_stream_view stream)
    {
        storage_.set_element_to_zero_async(0, stream);
    }

    [[nodiscard]] pointer data() noexcept
    {
        return storage_.data();
    }
    [[nodiscard]] const_pointer data() const noexcept
    {
        return storage_.data();
    }
    [[nodiscard]] constexpr size_type size() const noexcept
    {
        return 1;
    }
    [[nodiscard]] detail::resource_of_container
    memory_resource() RMM_COMPAT_CLASSIC_CONST noexcept
    {
        return storage_.memory_resource();
    }
    [[nodiscard]] detail::stream_of_container stream() const noexcept
    {
        return storage_.stream();
    }
    void set_stream(cuda_stream_view stream) noexcept
    {
        storage_.set_stream(stream);
    }

  private:
    /* A copy would read the temporary when the stream comes to it; a fill keeps its byte. */
    void set_to_temporary(const T &value, cuda_stream_view stream)
    {
        unsigned char bytes[sizeof(T)];

        std::memcpy(bytes, &value, sizeof(T));
        if (std::memcmp(bytes, bytes + 1, sizeof(T) - 1) == 0) {
            const cuda_set_device_raii scope(storage_.device());
            detail::fill_in_order(data(), bytes[0], sizeof(T), stream);
        } else {
            storage_.set_element(0, value, stream);
        }
    }

    array storage_;
};

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DEVICE_SCALAR_HPP */
