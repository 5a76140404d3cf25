/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/resources.hpp
 *
 * The resources of the library that have no functions of the program below them. A
 * constructor creates the resource on the current device; its C header says what it does,
 * and what fails with which status (rmm/cxx/error.hpp maps it to an exception).
 *
 *     rmmc::pool_options options;
 *     options.initial_bytes = 1 << 30;
 *     rmmc::pool_resource pool(rmmc::cuda_resource(), options);
 *
 * Options are the C structs; a NAME_options is one with all defaults. A constructor with an
 * upstream keeps a reference of its own.
 *
 * Lifetime, threads, exceptions: as rmm/cxx/resource.hpp.
 */
#ifndef RMM_CXX_RESOURCES_HPP
#define RMM_CXX_RESOURCES_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <rmm/arena_resource.h>
#include <rmm/async_managed_resource.h>
#include <rmm/async_resource.h>
#include <rmm/async_view_resource.h>
#include <rmm/auto_resource.h>
#include <rmm/binning_resource.h>
#include <rmm/cuda_resource.h>
#include <rmm/cxx/resource.hpp>
#include <rmm/fixed_size_resource.h>
#include <rmm/host_resource.h>
#include <rmm/managed_resource.h>
#include <rmm/pinned_resource.h>
#include <rmm/pool_resource.h>
#include <rmm/pool_sleep.h>
#include <rmm/resource_spec.h>
#include <rmm/sam_headroom_resource.h>
#include <rmm/system_resource.h>

namespace rmmc
{

/** The constructor from `as_is` is resource_cast()'s, here and below. */
class cuda_resource : public device_resource
{
  public:
    static constexpr const char *type_name = "cuda";

    cuda_resource() : device_resource(detail::create(rmm_cuda_resource_create))
    {
    }
    cuda_resource(detail::as_is, resource mr) : device_resource(std::move(mr))
    {
    }
};

class managed_resource : public host_device_resource
{
  public:
    static constexpr const char *type_name = "managed";

    managed_resource()
        : host_device_resource(detail::create(rmm_managed_resource_create))
    {
    }
    managed_resource(detail::as_is, resource mr) : host_device_resource(std::move(mr))
    {
    }
};

class pinned_resource : public host_device_resource
{
  public:
    static constexpr const char *type_name = "pinned";

    pinned_resource() : host_device_resource(detail::create(rmm_pinned_resource_create))
    {
    }
    pinned_resource(detail::as_is, resource mr) : host_device_resource(std::move(mr))
    {
    }
};

class host_resource : public host_accessible_resource
{
  public:
    static constexpr const char *type_name = "host";

    host_resource() : host_accessible_resource(detail::create(rmm_host_resource_create))
    {
    }
    host_resource(detail::as_is, resource mr) : host_accessible_resource(std::move(mr))
    {
    }
};

class system_resource : public host_device_resource
{
  public:
    static constexpr const char *type_name = "system";

    system_resource() : host_device_resource(detail::create(rmm_system_resource_create))
    {
    }
    system_resource(detail::as_is, resource mr) : host_device_resource(std::move(mr))
    {
    }
};

using sam_headroom_options = with_defaults<rmm_sam_headroom_options_t>;

class sam_headroom_resource : public host_device_resource
{
  public:
    static constexpr const char *type_name = "sam_headroom";

    explicit sam_headroom_resource(
        const rmm_sam_headroom_options_t &options = sam_headroom_options())
        : host_device_resource(
              detail::create(rmm_sam_headroom_resource_create, &options))
    {
    }
    sam_headroom_resource(detail::as_is, resource mr)
        : host_device_resource(std::move(mr))
    {
    }

    std::uint64_t headroom_bytes() const
    {
        return detail::figure_of<std::uint64_t>(rmm_sam_headroom_get_headroom, *this);
    }
};

using async_options = with_defaults<rmm_async_options_t>;

class async_resource : public device_resource
{
  public:
    static constexpr const char *type_name = "async";

    explicit async_resource(const rmm_async_options_t &options = async_options())
        : device_resource(detail::create(rmm_async_resource_create, &options))
    {
    }
    async_resource(detail::as_is, resource mr) : device_resource(std::move(mr))
    {
    }

    std::uint64_t release_threshold_bytes() const
    {
        return detail::figure_of<std::uint64_t>(rmm_async_get_release_threshold, *this);
    }
    /** The cudaMemPool_t, borrowed. */
    void *pool_handle() const noexcept
    {
        return rmm_async_resource_pool_handle(get());
    }
};

/** The same with memory of the host: rmm_async_options_t::location. */
class async_pinned_resource : public host_device_resource
{
  public:
    static constexpr const char *type_name = "async_pinned";

    /** @param options their location is RMM_ASYNC_ON_HOST where it is RMM_ASYNC_ON_DEVICE */
    explicit async_pinned_resource(rmm_async_options_t options = async_options())
        : host_device_resource(make(options))
    {
    }
    async_pinned_resource(detail::as_is, resource mr)
        : host_device_resource(std::move(mr))
    {
    }

    std::uint64_t release_threshold_bytes() const
    {
        return detail::figure_of<std::uint64_t>(rmm_async_get_release_threshold, *this);
    }
    void *pool_handle() const noexcept
    {
        return rmm_async_resource_pool_handle(get());
    }

  private:
    static resource make(rmm_async_options_t &options)
    {
        if (options.location == RMM_ASYNC_ON_DEVICE) {
            options.location = RMM_ASYNC_ON_HOST;
        }
        return detail::create(rmm_async_resource_create, &options);
    }
};

class async_view_resource : public device_resource
{
  public:
    static constexpr const char *type_name = "async_view";

    /** @param cuda_mem_pool a cudaMemPool_t of the current device, borrowed
     *  @param flags RMM_ASYNC_WAIT_BEFORE_REFUSAL, or 0 */
    explicit async_view_resource(void *cuda_mem_pool, std::uint32_t flags = 0)
        : device_resource(detail::create(
              rmm_async_view_resource_create_with_flags, cuda_mem_pool, flags))
    {
    }
    async_view_resource(detail::as_is, resource mr) : device_resource(std::move(mr))
    {
    }

    std::uint64_t release_threshold_bytes() const
    {
        return detail::figure_of<std::uint64_t>(rmm_async_get_release_threshold, *this);
    }
    void *pool_handle() const noexcept
    {
        return rmm_async_resource_pool_handle(get());
    }
};

class async_managed_resource : public host_device_resource
{
  public:
    static constexpr const char *type_name = "async_managed";

    /** @param flags RMM_ASYNC_WAIT_BEFORE_REFUSAL, or 0 */
    explicit async_managed_resource(std::uint32_t flags = 0)
        : host_device_resource(
              detail::create(rmm_async_managed_resource_create_with_flags, flags))
    {
    }
    async_managed_resource(detail::as_is, resource mr)
        : host_device_resource(std::move(mr))
    {
    }

    std::uint64_t release_threshold_bytes() const
    {
        return detail::figure_of<std::uint64_t>(rmm_async_get_release_threshold, *this);
    }
    void *pool_handle() const noexcept
    {
        return rmm_async_resource_pool_handle(get());
    }
};

using pool_options = with_defaults<rmm_pool_options_t>;
using pool_sleep_options = with_defaults<rmm_pool_sleep_options_t>;

/** Over memory that the host can access too, a pool's can be as well:
 * host_device_resource(pool) checks that. The same holds for the three that follow. */
class pool_resource : public device_resource
{
  public:
    static constexpr const char *type_name = "pool";

    /** @param upstream empty with RMM_POOL_VIRTUAL, and only then */
    explicit pool_resource(
        const resource &upstream, const rmm_pool_options_t &options = pool_options())
        : device_resource(
              detail::create(rmm_pool_resource_create, upstream.get(), &options))
    {
    }
    pool_resource(detail::as_is, resource mr) : device_resource(std::move(mr))
    {
    }

    /** 0: there is none. */
    std::uint64_t maximum_bytes() const
    {
        return detail::figure_of<std::uint64_t>(rmm_pool_get_maximum, *this);
    }
    /** The bytes that it holds from upstream or the driver now. */
    std::uint64_t reserved_bytes() const
    {
        return get_stats().reserved_bytes;
    }

    /** Give all memory back to the device until wake(): rmm/pool_sleep.h.
     *  @throws busy_error it is asleep, or in use; unsupported: it is not virtual */
    void sleep(const rmm_pool_sleep_options_t &options = pool_sleep_options())
    {
        detail::call().check(rmm_pool_sleep(get(), &options));
    }
    /** @throws out_of_memory the device has too little: it is still asleep */
    void wake()
    {
        detail::call().check(rmm_pool_wake(get()));
    }
    rmm_pool_state_t state() const
    {
        return detail::figure_of<rmm_pool_state_t>(rmm_pool_get_state, *this);
    }
};

/** A pool_resource that maps memory where that is right: rmm/auto_resource.h. */
class auto_resource : public pool_resource
{
  public:
    explicit auto_resource(const rmm_pool_options_t &options = pool_options())
        : pool_resource(
              detail::as_is(), detail::create(rmm_auto_resource_create, &options))
    {
    }
    auto_resource(detail::as_is, resource mr)
        : pool_resource(detail::as_is(), std::move(mr))
    {
    }
};

using arena_options = with_defaults<rmm_arena_options_t>;

class arena_resource : public device_resource
{
  public:
    static constexpr const char *type_name = "arena";

    explicit arena_resource(
        const resource &upstream, const rmm_arena_options_t &options = arena_options())
        : device_resource(
              detail::create(rmm_arena_resource_create, upstream.get(), &options))
    {
    }
    arena_resource(detail::as_is, resource mr) : device_resource(std::move(mr))
    {
    }
};

using fixed_size_options = with_defaults<rmm_fixed_size_options_t>;

class fixed_size_resource : public device_resource
{
  public:
    static constexpr const char *type_name = "fixed_size";

    explicit fixed_size_resource(
        const resource &upstream,
        const rmm_fixed_size_options_t &options = fixed_size_options())
        : device_resource(
              detail::create(rmm_fixed_size_resource_create, upstream.get(), &options))
    {
    }
    fixed_size_resource(detail::as_is, resource mr) : device_resource(std::move(mr))
    {
    }

    std::uint64_t block_bytes() const
    {
        return detail::figure_of<std::uint64_t>(rmm_fixed_size_get_block_bytes, *this);
    }
    std::uint64_t blocks_per_chunk() const
    {
        return detail::figure_of<std::uint64_t>(
            rmm_fixed_size_get_blocks_per_chunk, *this);
    }
};

using binning_options = with_defaults<rmm_binning_options_t>;

class binning_resource : public device_resource
{
  public:
    static constexpr const char *type_name = "binning";

    explicit binning_resource(
        const resource &upstream,
        const rmm_binning_options_t &options = binning_options())
        : device_resource(
              detail::create(rmm_binning_resource_create, upstream.get(), &options))
    {
    }
    binning_resource(detail::as_is, resource mr) : device_resource(std::move(mr))
    {
    }

    /** @param bin empty: blocks of that size over upstream */
    void add_bin(std::size_t bytes, const resource &bin = resource()) const
    {
        detail::call().check(rmm_binning_resource_add_bin(get(), bytes, bin.get()));
    }
};

/** The resources that a text names, "statistics+pool:1GiB": as rmm/resource_spec.h. */
inline resource resource_from_spec(const std::string &spec)
{
    return detail::create(rmm_resource_create_from_spec, spec.c_str());
}

/** @throws invalid_argument, with the reason, if the text is malformed */
inline void check_spec(const std::string &spec)
{
    detail::call().check(rmm_resource_check_spec(spec.c_str()));
}

} /* namespace rmmc */

#endif /* RMM_CXX_RESOURCES_HPP */
