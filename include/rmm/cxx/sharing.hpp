/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/sharing.hpp
 *
 * Memory of a pool or an async resource for other processes (rmm/pool_sharing.h, which says how
 * long it lives and in which order it is used).
 *
 *     rmmc::exported_memory(mr, ptr).send(socket);                  // the exporter
 *     rmmc::imported_memory block(rmmc::exported_memory::receive(socket)); // the importer
 *
 * Exceptions: as rmm/cxx/error.hpp. Threads: an object is used by one at a time.
 */
#ifndef RMM_CXX_SHARING_HPP
#define RMM_CXX_SHARING_HPP

#include <cstddef>
#include <cstdint>
#include <utility>

#include <rmm/cxx/error.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/pool_sharing.h>

namespace rmmc
{

/** Describes a block for another process; owns its descriptors. Moves only. */
class exported_memory
{
  public:
    /** bytes 0: to the end of the block. flags: RMM_POOL_EXPORT_*, or-ed. */
    explicit exported_memory(
        const resource &mr, const void *ptr, std::size_t bytes = 0,
        std::uint64_t flags = 0)
    {
        detail::call().check(rmm_pool_export(mr.get(), ptr, bytes, flags, &exported_));
    }
    /** What send() of the other process has sent; waits for it. */
    static exported_memory receive(int socket)
    {
        exported_memory received;
        detail::call().check(rmm_pool_export_receive(socket, &received.exported_));
        return received;
    }
    exported_memory(exported_memory &&other) noexcept
        : exported_(std::exchange(other.exported_, RMM_POOL_EXPORTED_INIT))
    {
    }
    exported_memory &operator=(exported_memory &&other) noexcept
    {
        std::swap(exported_, other.exported_);
        return *this;
    }
    exported_memory(const exported_memory &) = delete;
    exported_memory &operator=(const exported_memory &) = delete;
    ~exported_memory()
    {
        rmm_pool_export_release(&exported_);
    }

    /** Over a connected Unix socket. */
    void send(int socket) const
    {
        detail::call().check(rmm_pool_export_send(&exported_, socket));
    }
    /** For other means of sending. */
    const rmm_pool_exported_t &get() const noexcept
    {
        return exported_;
    }

  private:
    exported_memory() noexcept = default;

    rmm_pool_exported_t exported_ = RMM_POOL_EXPORTED_INIT;
};

/** Memory of another process. The end waits for the devices and unmaps it. Moves only. */
class imported_memory
{
  public:
    explicit imported_memory(const exported_memory &exported)
        : imported_memory(exported.get())
    {
    }
    explicit imported_memory(const rmm_pool_exported_t &exported)
    {
        detail::call().check(rmm_pool_import(&exported, &imported_));
    }
    imported_memory(imported_memory &&other) noexcept
        : imported_(std::exchange(other.imported_, nullptr))
    {
    }
    imported_memory &operator=(imported_memory &&other) noexcept
    {
        std::swap(imported_, other.imported_);
        return *this;
    }
    imported_memory(const imported_memory &) = delete;
    imported_memory &operator=(const imported_memory &) = delete;
    ~imported_memory()
    {
        rmm_pool_import_release(imported_);
    }

    void *data() const noexcept
    {
        return imported_ != nullptr ? imported_->ptr : nullptr;
    }
    std::size_t size() const noexcept
    {
        return imported_ != nullptr ? static_cast<std::size_t>(imported_->bytes) : 0;
    }
    /** A device of this process. */
    int device() const noexcept
    {
        return imported_ != nullptr ? imported_->device : -1;
    }

  private:
    rmm_pool_imported_t *imported_ = nullptr;
};

} /* namespace rmmc */

#endif /* RMM_CXX_SHARING_HPP */
