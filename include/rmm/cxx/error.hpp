/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/error.hpp
 *
 * Failures of the C library as exceptions. Each has what the C library knows of the
 * failure: the status, the cudaError_t behind it (0: none), and the message.
 *
 *     status                                     exception            derives from
 *     RMM_ERR_OUT_OF_MEMORY                      out_of_memory        bad_alloc
 *     RMM_ERR_BAD_ALLOC, _OUT_OF_HOST_MEMORY     bad_alloc            std::bad_alloc
 *     RMM_ERR_INVALID_ARGUMENT, _ALIGNMENT       invalid_argument     logic_error
 *     RMM_ERR_UNSUPPORTED                        unsupported          logic_error
 *     RMM_ERR_OUT_OF_RANGE                       out_of_range         std::out_of_range
 *     RMM_ERR_CUDA, RMM_ERR_NO_DEVICE            cuda_error           std::runtime_error
 *     RMM_ERR_IO and any other                   io_error             std::runtime_error
 *
 * All derive from rmmc::error too, which is no std::exception by itself.
 *
 * Exceptions of callbacks never cross a C function: rmm/cxx/callback.hpp.
 *
 * Lifetime: a copy of an exception shares its message; copies do not throw. Threads: any.
 */
#ifndef RMM_CXX_ERROR_HPP
#define RMM_CXX_ERROR_HPP

#if __cplusplus < 201703L
#error "rmm/rmm.hpp needs C++17 or newer: compile with -std=c++17, or use rmm/rmm.h"
#include <rmm/needs_cxx17> /* is not there: the compiler stops, without further errors */
#elif !defined(__cpp_exceptions)
#error                                                                                 \
    "rmm/rmm.hpp throws exceptions: compile without -fno-exceptions, or use rmm/rmm.h"
#else

#include <new>
#include <stdexcept>

#include <rmm/export.h>
#include <rmm/status.h>

namespace rmmc
{

/** The part that all exceptions of this library share. */
class RMM_API error
{
  public:
    error(rmm_status_t status, int native_error, const char *message)
        : message_(message), status_(status), native_error_(native_error)
    {
    }
    error(const error &) = default;
    error &operator=(const error &) = default;
    virtual ~error() = default;

    rmm_status_t status() const noexcept
    {
        return status_;
    }
    /** The cudaError_t that caused the failure; 0: none did. */
    int native_error() const noexcept
    {
        return native_error_;
    }
    /** The same as what(). Lives as long as this exception or a copy of it. */
    const char *message() const noexcept
    {
        return message_.what();
    }

  private:
    std::runtime_error message_; /* its copies share the text and do not throw */
    rmm_status_t status_;
    int native_error_;
};

/** An allocation failed. */
class RMM_API bad_alloc : public std::bad_alloc, public error
{
  public:
    using error::error;
    const char *what() const noexcept override
    {
        return message();
    }
};

/** The device, a pool or a limit is exhausted: the same request may succeed later. */
class RMM_API out_of_memory : public bad_alloc
{
  public:
    using bad_alloc::bad_alloc;
};

/** The program called a function in a way that can never work. */
class RMM_API logic_error : public std::logic_error, public error
{
  public:
    logic_error(rmm_status_t status, int native_error, const char *message)
        : std::logic_error(message), error(status, native_error, message)
    {
    }
};

/** An argument is not valid. */
class RMM_API invalid_argument : public logic_error
{
  public:
    using logic_error::logic_error;
};

/** The device, the driver or the kind of resource cannot do this. */
class RMM_API unsupported : public logic_error
{
  public:
    using logic_error::logic_error;
};

/** An index or a device does not exist, or there is no scope to pop. */
class RMM_API out_of_range : public std::out_of_range, public error
{
  public:
    out_of_range(rmm_status_t status, int native_error, const char *message)
        : std::out_of_range(message), error(status, native_error, message)
    {
    }
};

/** A CUDA call failed, or there is no usable GPU (RMM_ERR_NO_DEVICE). */
class RMM_API cuda_error : public std::runtime_error, public error
{
  public:
    cuda_error(rmm_status_t status, int native_error, const char *message)
        : std::runtime_error(message), error(status, native_error, message)
    {
    }
};

/** Input or output failed, or the library is newer than this header and knows more. */
class RMM_API io_error : public std::runtime_error, public error
{
  public:
    io_error(rmm_status_t status, int native_error, const char *message)
        : std::runtime_error(message), error(status, native_error, message)
    {
    }
};

/** A pool is asleep, or what was asked for is in use: the same call may succeed later. */
class RMM_API busy_error : public std::runtime_error, public error
{
  public:
    busy_error(rmm_status_t status, int native_error, const char *message)
        : std::runtime_error(message), error(status, native_error, message)
    {
    }
};

/** Throw the exception of @p status with this text. Never returns; RMM_OK is not a failure. */
[[noreturn]] inline void
throw_status(rmm_status_t status, int native_error, const char *message)
{
    switch (status) {
    case RMM_ERR_OUT_OF_MEMORY:
        throw out_of_memory(status, native_error, message);
    case RMM_ERR_BAD_ALLOC:
    case RMM_ERR_OUT_OF_HOST_MEMORY:
        throw bad_alloc(status, native_error, message);
    case RMM_ERR_INVALID_ARGUMENT:
    case RMM_ERR_INVALID_ALIGNMENT:
        throw invalid_argument(status, native_error, message);
    case RMM_ERR_UNSUPPORTED:
        throw unsupported(status, native_error, message);
    case RMM_ERR_OUT_OF_RANGE:
        throw out_of_range(status, native_error, message);
    case RMM_ERR_CUDA:
    case RMM_ERR_NO_DEVICE:
        throw cuda_error(status, native_error, message);
    case RMM_ERR_ASLEEP:
    case RMM_ERR_IN_USE:
        throw busy_error(status, native_error, message);
    case RMM_OK:
    case RMM_ERR_IO:
        break;
    }
    throw io_error(status, native_error, message);
}

/** Throw the exception of a C function that just failed on this thread. */
[[noreturn]] inline void throw_status(rmm_status_t status)
{
    throw_status(status, rmm_last_cuda_error(), rmm_last_error_message());
}

} /* namespace rmmc */

#endif /* exceptions */
#endif /* RMM_CXX_ERROR_HPP */
