/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/runtime_capabilities.hpp
 *
 * RMM's questions about the current device and the driver.
 */
#ifndef RMM_COMPAT_DETAIL_RUNTIME_CAPABILITIES_HPP
#define RMM_COMPAT_DETAIL_RUNTIME_CAPABILITIES_HPP

#include <rmm/cuda_device.hpp>
#include <rmm/detail/cuda_api.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/device.h>

#define RMM_MIN_HWDECOMPRESS_CUDA_VERSION 12080
#define RMM_MIN_ASYNC_MANAGED_ALLOC_CUDA_VERSION 13000

namespace RMM_NAMESPACE
{
namespace detail
{

inline bool current_device_supports(rmm_device_ability_t ability)
{
    bool is_supported = false;
    const int device = get_current_cuda_device().value();

    check([&] { return rmm_device_supports(device, ability, &is_supported); });
    return is_supported;
}

struct runtime_async_managed_alloc {
    static bool is_supported()
    {
        return current_device_supports(RMM_ABILITY_ASYNC_MANAGED);
    }
};

#if RMM_COMPAT_HAS_CUDA
/* 0 if the runtime does not know the attribute. */
inline int attribute_of_current_device(cudaDeviceAttr attribute)
{
    int value = 0;
    const cudaError_t error =
        cudaDeviceGetAttribute(&value, attribute, get_current_cuda_device().value());

    if (error == cudaErrorInvalidValue) {
        (void)cudaGetLastError();
        return 0;
    }
    RMM_CUDA_TRY(error);
    return value;
}

struct export_handle_type {
    static bool is_supported(cudaMemAllocationHandleType type)
    {
        const int wanted = static_cast<int>(type);
#if RMM_COMPAT_HAS_HIP && HIP_VERSION < 60100000 /* which do not know the attribute */
        const int supported = 0;
#else
        const int supported =
            attribute_of_current_device(cudaDevAttrMemoryPoolSupportedHandleTypes);
#endif

        return (supported & wanted) == wanted;
    }
};

struct concurrent_managed_access {
    static bool is_supported()
    {
        return attribute_of_current_device(cudaDevAttrConcurrentManagedAccess) == 1;
    }
};

struct device_integrated_memory {
    static bool is_supported()
    {
        return attribute_of_current_device(cudaDevAttrIntegrated) == 1;
    }
};

struct hwdecompress {
    static bool is_supported()
    {
        int version = 0;

        RMM_CUDA_TRY(cudaDriverGetVersion(&version));
        return version >= RMM_MIN_HWDECOMPRESS_CUDA_VERSION;
    }
};
#endif

struct runtime_async_alloc {
    static bool is_supported()
    {
        return current_device_supports(RMM_ABILITY_ASYNC);
    }
#if RMM_COMPAT_CLASSIC && RMM_COMPAT_HAS_CUDA
    /** Until RMM 25.08. */
    static bool is_export_handle_type_supported(cudaMemAllocationHandleType type)
    {
        return export_handle_type::is_supported(type);
    }
#endif
};

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DETAIL_RUNTIME_CAPABILITIES_HPP */
