/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/error.hpp
 *
 * RMM's macros for checks, and the conversion of this library's failures to RMM's exceptions.
 *
 *     RMM_EXPECTS(condition, reason [, exception])      default exception: rmm::logic_error
 *     RMM_FAIL(reason [, exception])
 *     RMM_CUDA_TRY(call [, exception])                  default exception: rmm::cuda_error
 *     RMM_CUDA_TRY_ALLOC(call [, bytes])                rmm::out_of_memory, rmm::bad_alloc
 *     RMM_ASSERT_CUDA_SUCCESS(call)                     asserts unless NDEBUG
 *     RMM_ASSERT_CUDA_SUCCESS_SAFE_SHUTDOWN(call)       the same, but allows an exiting runtime
 */
#ifndef RMM_COMPAT_DETAIL_ERROR_HPP
#define RMM_COMPAT_DETAIL_ERROR_HPP

#include <cassert>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iostream> /* for programs: as RMM's */
#include <string>
#include <type_traits>
#include <utility>

#include <rmm/cxx/callback.hpp>
#include <rmm/cxx/error.hpp>
#include <rmm/detail/cuda_api.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/error.hpp>

namespace RMM_NAMESPACE
{
namespace detail
{

inline std::string place(const char *what, const char *file, int line)
{
    return std::string(what) + " at: " + file + ":" + std::to_string(line) + ": ";
}

template <class Exception>
[[noreturn]] void throw_failure(const char *file, int line, const std::string &reason)
{
    static_assert(
        std::is_base_of<std::exception, Exception>::value,
        "the type is that of an exception");
    throw Exception(place("RMM failure", file, line) + reason);
}

#if RMM_COMPAT_CLASSIC
/* What RMM_EXPECTS makes of its arguments, of which one is a type and the other a text: behind
 * each it writes `+ reason_probe()`. A text gets a plus sign, a type a cast of what follows. */
struct reason_probe {
};
inline std::string operator+(const std::string &text, reason_probe)
{
    return text;
}
inline const char *operator+(reason_probe)
{
    return "";
}
template <class Exception>
std::string reason_of(const std::string &reason, const Exception &)
{
    return reason;
}
template <class Exception>
std::string reason_of(const Exception &, const std::string &reason)
{
    return reason;
}
template <class First, class Second>
using exception_of =
    std::conditional_t<std::is_base_of<std::exception, First>::value, First, Second>;
#endif

#if RMM_COMPAT_HAS_HIP
#define RMM_COMPAT_CUDA_ERROR "Device error" /* in hipMM's words */
#else
#define RMM_COMPAT_CUDA_ERROR "CUDA error"
#endif
#if RMM_COMPAT_HAS_CUDA
inline std::string text_of(cudaError_t error)
{
    return std::string(cudaGetErrorName(error)) + " " + cudaGetErrorString(error);
}

template <class Exception>
[[noreturn]] void throw_cuda(cudaError_t error, const char *file, int line)
{
    (void)cudaGetLastError(); /* or the program's next check finds this error again */
    throw Exception(place(RMM_COMPAT_CUDA_ERROR, file, line) + text_of(error));
}

/* One argument more if the size is known. */
template <class... Bytes>
[[noreturn]] void
throw_cuda_alloc(cudaError_t error, const char *file, int line, Bytes... bytes)
{
    std::string what = RMM_COMPAT_CUDA_ERROR;

    (void)cudaGetLastError();
    ((what += " (failed to allocate " + std::to_string(bytes) + " bytes)"), ...);
    what = place(what.c_str(), file, line) + text_of(error);
    if (error == cudaErrorMemoryAllocation) {
        throw out_of_memory(what);
    }
    throw bad_alloc(what);
}

inline void
assert_success(cudaError_t error, [[maybe_unused]] bool is_allowed, const char *call)
{
    if (error != cudaSuccess && !is_allowed) {
        (void)std::fprintf(stderr, "%s: %s\n", call, text_of(error).c_str());
        assert(error == cudaSuccess);
    }
}
#endif

/* Throws RMM's exception for a failure of this library. */
template <class Function> decltype(auto) translated(Function &&function)
{
    try {
        return std::forward<Function>(function)();
    } catch (const rmmc::out_of_memory &failure) {
        throw out_of_memory(failure.message());
    } catch (const rmmc::bad_alloc &failure) {
        throw bad_alloc(failure.message());
    } catch (const rmmc::logic_error &failure) {
        throw logic_error(failure.message());
    } catch (const rmmc::out_of_range &failure) {
        throw out_of_range(failure.message());
    } catch (const rmmc::cuda_error &failure) {
        throw cuda_error(failure.message());
    }
}

/* Calls a function of C: check([&] { return rmm_...(...); }). */
template <class Function> void check(Function &&function)
{
    translated([&] { rmmc::detail::call().check(function()); });
}

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#define RMM_STRINGIFY(x) RMM_COMPAT_STRINGIFY(x)
#define RMM_COMPAT_STRINGIFY(x) #x
#define RMM_COMPAT_THIRD(first, second, third, ...) third
#define RMM_COMPAT_FOURTH(first, second, third, fourth, ...) fourth

#define RMM_EXPECTS(...)                                                               \
    RMM_COMPAT_FOURTH(__VA_ARGS__, RMM_COMPAT_EXPECTS_3, RMM_COMPAT_EXPECTS_2, ~)      \
    (__VA_ARGS__)
/* RMM_EXPECTS for these headers: without the cast below, of which a compiler warns on request. */
#define RMM_COMPAT_EXPECTS(condition, reason, ...)                                     \
    ((condition)                                                                       \
         ? (void)0                                                                     \
         : rmm::detail::throw_failure<__VA_ARGS__>(__FILE__, __LINE__, reason))
#define RMM_COMPAT_EXPECTS_2(condition, reason)                                        \
    RMM_COMPAT_EXPECTS(condition, reason, rmm::logic_error)
#if RMM_COMPAT_CLASSIC
/* Until RMM 22.12 the exception came before the reason; both orders are taken. */
#define RMM_COMPAT_EXPECTS_3(condition, reason, exception)                             \
    ((condition)                                                                       \
         ? (void)0                                                                     \
         : rmm::detail::throw_failure<                                                 \
               rmm::detail::exception_of<__typeof__(reason), __typeof__(exception)>>(  \
               __FILE__, __LINE__,                                                     \
               rmm::detail::reason_of(                                                 \
                   (reason) + rmm::detail::reason_probe(),                             \
                   (exception) + rmm::detail::reason_probe())))
#else
#define RMM_COMPAT_EXPECTS_3(condition, reason, ...)                                   \
    RMM_COMPAT_EXPECTS(condition, reason, __VA_ARGS__)
#endif

#define RMM_FAIL(...)                                                                  \
    RMM_COMPAT_THIRD(__VA_ARGS__, RMM_COMPAT_FAIL_2, RMM_COMPAT_FAIL_1, ~)             \
    (__VA_ARGS__)
#define RMM_COMPAT_FAIL_1(reason) RMM_COMPAT_FAIL_2(reason, rmm::logic_error)
#define RMM_COMPAT_FAIL_2(reason, ...)                                                 \
    rmm::detail::throw_failure<__VA_ARGS__>(__FILE__, __LINE__, reason)

#define RMM_CUDA_TRY(...)                                                              \
    RMM_COMPAT_THIRD(__VA_ARGS__, RMM_COMPAT_CUDA_TRY_2, RMM_COMPAT_CUDA_TRY_1, ~)     \
    (__VA_ARGS__)
#define RMM_COMPAT_CUDA_TRY_1(call) RMM_COMPAT_CUDA_TRY_2(call, rmm::cuda_error)
#define RMM_COMPAT_CUDA_TRY_2(call, ...)                                               \
    do {                                                                               \
        const cudaError_t rmm_compat_error = (call);                                   \
        if (rmm_compat_error != cudaSuccess) {                                         \
            rmm::detail::throw_cuda<__VA_ARGS__>(                                      \
                rmm_compat_error, __FILE__, __LINE__);                                 \
        }                                                                              \
    } while (0)

#define RMM_CUDA_TRY_ALLOC(...)                                                        \
    RMM_COMPAT_THIRD(                                                                  \
        __VA_ARGS__, RMM_COMPAT_CUDA_TRY_ALLOC_2, RMM_COMPAT_CUDA_TRY_ALLOC_1, ~)      \
    (__VA_ARGS__)
#define RMM_COMPAT_CUDA_TRY_ALLOC_1(call)                                              \
    do {                                                                               \
        const cudaError_t rmm_compat_error = (call);                                   \
        if (rmm_compat_error != cudaSuccess) {                                         \
            rmm::detail::throw_cuda_alloc(rmm_compat_error, __FILE__, __LINE__);       \
        }                                                                              \
    } while (0)
#define RMM_COMPAT_CUDA_TRY_ALLOC_2(call, bytes)                                       \
    do {                                                                               \
        const cudaError_t rmm_compat_error = (call);                                   \
        if (rmm_compat_error != cudaSuccess) {                                         \
            rmm::detail::throw_cuda_alloc(                                             \
                rmm_compat_error, __FILE__, __LINE__, bytes);                          \
        }                                                                              \
    } while (0)

#ifdef NDEBUG
#define RMM_ASSERT_CUDA_SUCCESS(call) ((void)(call))
#define RMM_ASSERT_CUDA_SUCCESS_SAFE_SHUTDOWN(call) ((void)(call))
#else
#define RMM_ASSERT_CUDA_SUCCESS(call)                                                  \
    rmm::detail::assert_success((call), false, RMM_STRINGIFY((call)))
#define RMM_ASSERT_CUDA_SUCCESS_SAFE_SHUTDOWN(call)                                    \
    do {                                                                               \
        const cudaError_t rmm_compat_error = (call);                                   \
        rmm::detail::assert_success(                                                   \
            rmm_compat_error, rmm_compat_error == cudaErrorCudartUnloading,            \
            RMM_STRINGIFY((call)));                                                    \
    } while (0)
#endif

#endif /* RMM_COMPAT_DETAIL_ERROR_HPP */
