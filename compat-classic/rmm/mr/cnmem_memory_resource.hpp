/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/cnmem_memory_resource.hpp
 *
 * RMM's resource over CNMeM, until 0.15: here a pool for each of the devices.
 */
#ifndef RMM_COMPAT_MR_CNMEM_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_CNMEM_MEMORY_RESOURCE_HPP

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/cxx/resources.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/device_memory_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

class cnmem_memory_resource : public device_memory_resource
{
  public:
    /** @param initial_pool_size 0: half of the free memory of each device
     * @param devices none: the current device. Memory comes from the pool of the device that is
     * current at the call. */
    explicit cnmem_memory_resource(
        std::size_t initial_pool_size = 0, const std::vector<int> &devices = {})
        : cnmem_memory_resource(initial_pool_size, devices, memory_kind::CUDA)
    {
    }
    cnmem_memory_resource(const cnmem_memory_resource &) = delete;
    cnmem_memory_resource &operator=(const cnmem_memory_resource &) = delete;

    [[nodiscard]] bool supports_get_mem_info() const noexcept override
    {
        return true;
    }
    /** Not in RMM: the pool of the current device. */
    [[nodiscard]] rmmc::resource library() override
    {
        return pool();
    }

  protected:
    enum class memory_kind : unsigned short { MANAGED, CUDA };

    cnmem_memory_resource(
        std::size_t initial_pool_size, const std::vector<int> &devices,
        memory_kind kind)
    {
        const std::vector<int> current = {get_current_cuda_device().value()};

        for (int device : devices.empty() ? current : devices) {
            const cuda_set_device_raii scope{cuda_device_id(device)};
            pools_[device] =
                detail::translated([&] { return make(initial_pool_size, kind); });
        }
    }

  private:
    static rmmc::resource make(std::size_t initial_bytes, memory_kind kind)
    {
        rmmc::pool_options options;

        options.initial_bytes = align_up(
            initial_bytes != 0 ? initial_bytes : percent_of_free_device_memory(50),
            CUDA_ALLOCATION_ALIGNMENT);
        if (kind == memory_kind::MANAGED) {
            return rmmc::pool_resource(rmmc::managed_resource(), options);
        }
        return rmmc::pool_resource(rmmc::cuda_resource(), options);
    }
    rmmc::resource pool() const
    {
        const auto found = pools_.find(get_current_cuda_device().value());

        RMM_EXPECTS(
            found != pools_.end(), "there is no pool of CNMeM for the current device");
        return found->second;
    }
    void *do_allocate(std::size_t bytes, cuda_stream_view stream) override
    {
        return detail::translated([&] { return pool().allocate(stream, bytes); });
    }
    void do_deallocate(void *ptr, std::size_t bytes, cuda_stream_view stream) override
    {
        pool().deallocate(stream, ptr, bytes);
    }
    [[nodiscard]] bool
    do_is_equal(const device_memory_resource &other) const noexcept override
    {
        return dynamic_cast<const cnmem_memory_resource *>(&other) != nullptr;
    }
    [[nodiscard]] std::pair<std::size_t, std::size_t>
    do_get_mem_info(cuda_stream_view) const override
    {
        return available_device_memory();
    }

    std::map<int, rmmc::resource>
        pools_; /* by device; not changed after the constructor */
};

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_CNMEM_MEMORY_RESOURCE_HPP */
