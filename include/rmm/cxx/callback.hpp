/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/callback.hpp
 *
 * How C++ calls the C library, and how the C library calls functions of C++. An exception
 * must not cross a C function. So each function of C++ that the C library calls (of a custom
 * or callback resource, a failure callback, a sink of rows, a log function) runs inside of a
 * detail::callback, which keeps an exception for its thread and returns a failure to the C
 * library. detail::call rethrows it at the C++ caller of the C function:
 *
 *     pool.allocate()             detail::call: rethrows X
 *       rmm_resource_alloc()        C: returns a failure
 *         the custom resource         detail::callback: keeps X, returns RMM_ERR_BAD_ALLOC
 *           allocate() of the program   throws X
 *
 * - If the C function succeeds after all (a pool tries again, a failure callback has freed
 *   memory), the exception of the failed attempt is dropped. If it fails after several
 *   attempts, that of the last one comes out.
 * - Callbacks nest: a call inside of a callback sees only exceptions of its own callbacks.
 * - Frees do not fail. An exception of a deallocate or destroy function, and one of a log
 *   function or sink in a call that succeeds, has no caller to come out at.
 *   take_unhandled_exception() returns it.
 *
 * Threads: what is kept belongs to the thread. A library that a program loads by dlopen()
 * keeps its own, unless the program is linked with -rdynamic: an exception from there comes
 * out as that of its status.
 */
#ifndef RMM_CXX_CALLBACK_HPP
#define RMM_CXX_CALLBACK_HPP

#include <exception>
#include <new>
#include <string>
#include <utility>

#include <rmm/cxx/error.hpp>
#include <rmm/export.h>
#include <rmm/status.h>

namespace rmmc
{
namespace detail
{

/* The first needs no construction and no destruction: it is all that a call without an
 * exception looks at, and valid after the thread's other objects were destroyed. */
enum class keeper_state : unsigned char { empty, pending, ended };
RMM_API inline thread_local keeper_state keeper_now = keeper_state::empty;

struct RMM_API keeper {
    std::exception_ptr pending;   /* of the C call that is running */
    bool is_of_sink = false;      /* pending was thrown by a log function or sink */
    std::exception_ptr unhandled; /* the last that had no caller */

    keeper() = default;
    keeper(const keeper &) = delete;
    keeper &operator=(const keeper &) = delete;
    ~keeper()
    {
        keeper_now = keeper_state::ended;
    }
};

/* Not while keeper_now is `ended`. RMM_API, as keeper_now: a library that hides its inline
 * functions must not have one without the other. */
RMM_API inline keeper &this_keeper() noexcept
{
    static thread_local keeper kept;
    return kept;
}

inline void drop_pending() noexcept
{
    keeper &kept = this_keeper();

    if (kept.is_of_sink) {
        kept.unhandled = std::move(kept.pending);
    }
    kept.pending = nullptr;
    keeper_now = keeper_state::empty;
}

/* The exception of the callback that failed, else that of the status. */
[[noreturn]] inline void
throw_pending_or(rmm_status_t status, void (*throw_of_status)(rmm_status_t))
{
    if (keeper_now == keeper_state::pending) {
        std::exception_ptr pending = std::move(this_keeper().pending);
        this_keeper().pending = nullptr;
        keeper_now = keeper_state::empty;
        if (pending != nullptr) {
            std::rethrow_exception(std::move(pending));
        }
    }
    throw_of_status(status);
    std::terminate(); /* not reached */
}

/* call().check(rmm_function(...)): throws if the function failed. The temporary is there
 * before the function runs, and drops what a call of C left behind. */
class call
{
  public:
    call() noexcept
    {
        if (keeper_now == keeper_state::pending) {
            drop_pending();
        }
    }
    /* throw_of_status: throws what stands for a failure of the C library. */
    void check(
        rmm_status_t status,
        void (*throw_of_status)(rmm_status_t) = rmmc::throw_status) const
    {
        if (status != RMM_OK) {
            throw_pending_or(status, throw_of_status);
        }
        if (keeper_now == keeper_state::pending) {
            drop_pending();
        }
    }
};

/* An object without its handle was moved from. */
inline void check_not_moved_from(const void *handle, const char *what)
{
    if (handle == nullptr) {
        throw_status(
            RMM_ERR_INVALID_ARGUMENT, 0,
            (std::string("the ") + what + " was moved from").c_str());
    }
}

/* The ways of treating an exception. */
enum class callback_kind {
    request, /* the C function fails, and its caller gets the exception */
    sink,    /* the same if no request threw; unhandled if the C function succeeds */
    free     /* unhandled */
};

/* In scope while a function of C++ runs for the C library. */
class callback
{
  public:
    explicit callback(callback_kind kind) noexcept : kind_(kind)
    {
        if (keeper_now == keeper_state::pending) {
            outer_ = std::move(this_keeper().pending);
            outer_is_of_sink_ = this_keeper().is_of_sink;
            this_keeper().pending = nullptr;
            keeper_now = keeper_state::empty;
        }
    }
    callback(const callback &) = delete;
    callback &operator=(const callback &) = delete;
    ~callback()
    {
        if (keeper_now == keeper_state::pending) { /* of a call of C in the function */
            drop_pending();
        }
        if (mine_ != nullptr) {
            keep_pending(std::move(mine_), kind_ == callback_kind::sink);
        } else if (outer_ != nullptr) {
            keep_pending(std::move(outer_), outer_is_of_sink_);
        }
    }

    /* In a handler: keep the exception that it handles. That of the last request wins: the C
     * function has dealt with those before. */
    void keep() noexcept
    {
        if (keeper_now == keeper_state::ended) {
            return; /* the thread ends: the status has to do */
        }
        if (kind_ == callback_kind::request ||
            (kind_ == callback_kind::sink && outer_ == nullptr)) {
            mine_ = std::current_exception();
        } else {
            this_keeper().unhandled = std::current_exception();
        }
    }

  private:
    static void keep_pending(std::exception_ptr &&pending, bool is_of_sink) noexcept
    {
        if (keeper_now != keeper_state::ended) {
            this_keeper().pending = std::move(pending);
            this_keeper().is_of_sink = is_of_sink;
            keeper_now = keeper_state::pending;
        }
    }

    std::exception_ptr outer_, mine_;
    callback_kind kind_;
    bool outer_is_of_sink_ = false;
};

/* In a handler: the status that stands for the exception it handles. */
inline rmm_status_t default_exception_status() noexcept
{
    try {
        throw;
    } catch (const error &failure) {
        return failure.status() != RMM_OK ? failure.status() : RMM_ERR_BAD_ALLOC;
    } catch (const std::bad_alloc &) {
        return RMM_ERR_OUT_OF_MEMORY;
    } catch (...) {
        return RMM_ERR_BAD_ALLOC;
    }
}

/* Run @p function, which allocates: RMM_OK, or what @p status_of_exception says. */
template <class Function>
rmm_status_t run_alloc(
    Function &&function,
    rmm_status_t (*status_of_exception)() = default_exception_status) noexcept
{
    callback scope(callback_kind::request);

    try {
        std::forward<Function>(function)();
        return RMM_OK;
    } catch (...) {
        scope.keep();
        return status_of_exception();
    }
}

/* Run @p function; false if it throws, else what it returns. */
template <class Function>
bool run_bool(callback_kind kind, Function &&function) noexcept
{
    callback scope(kind);

    try {
        return std::forward<Function>(function)();
    } catch (...) {
        scope.keep();
        return false;
    }
}

/* Run @p function, which returns nothing. */
template <class Function>
void run_void(callback_kind kind, Function &&function) noexcept
{
    callback scope(kind);

    try {
        std::forward<Function>(function)();
    } catch (...) {
        scope.keep();
    }
}

} /* namespace detail */

/**
 * The last exception of this thread that had no caller to come out at: of a deallocate or
 * destroy function, or of a log function or sink in a call that succeeded. Null if there is
 * none; forgotten by this call, and when the thread ends.
 */
inline std::exception_ptr take_unhandled_exception() noexcept
{
    if (detail::keeper_now == detail::keeper_state::ended) {
        return nullptr;
    }
    if (detail::keeper_now == detail::keeper_state::pending) { /* of a free */
        detail::drop_pending();
    }
    return std::exchange(detail::this_keeper().unhandled, nullptr);
}

} /* namespace rmmc */

#endif /* RMM_CXX_CALLBACK_HPP */
