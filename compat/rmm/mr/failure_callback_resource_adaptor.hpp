/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/failure_callback_resource_adaptor.hpp
 *
 * Calls a function when an allocation fails, which may free memory and let the adaptor try
 * again (rmm/failure_callback_adaptor.h).
 */
#ifndef RMM_COMPAT_MR_FAILURE_CALLBACK_RESOURCE_ADAPTOR_HPP
#define RMM_COMPAT_MR_FAILURE_CALLBACK_RESOURCE_ADAPTOR_HPP

#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include <rmm/cuda_stream_view.hpp>
#include <rmm/cxx/adaptors.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/error.hpp>
#include <rmm/mr/detail/library_resource.hpp>
#include <rmm/mr/failure_callback_t.hpp>
#include <rmm/mr/per_device_resource.hpp> /* for programs: as RMM's */

namespace RMM_NAMESPACE
{
namespace mr
{

namespace detail
{

/* Would the failure of the running allocation be thrown as an Exception? An upstream of the
 * program has thrown its own, which waits to be rethrown; the library's is out_of_memory or
 * bad_alloc, and of the latter kind only if the adaptor asks for it. */
template <class Exception> bool fails_with()
{
    using rmmc::detail::keeper_now;
    using rmmc::detail::keeper_state;

    if (keeper_now != keeper_state::pending) {
        return std::is_base_of<Exception, out_of_memory>::value;
    }
    try {
        std::rethrow_exception(rmmc::detail::this_keeper().pending);
    } catch (const Exception &) {
        return true;
    } catch (...) {
        return false;
    }
}

template <class Exception> struct failure_callback {
    failure_callback_t function;
    void *argument;

    static bool run(std::size_t bytes, void *self)
    {
        const auto &callback = *static_cast<failure_callback *>(self);

        bool is_again =
            fails_with<Exception>() &&
            rmmc::detail::run_bool(rmmc::detail::callback_kind::request, [&] {
                return callback.function(bytes, callback.argument);
            });

        if (is_again &&
            rmmc::detail::keeper_now == rmmc::detail::keeper_state::pending) {
            rmmc::detail::drop_pending(); /* that attempt is over */
        }
        return is_again;
    }
    static void destroy(void *self)
    {
        rmmc::detail::run_void(rmmc::detail::callback_kind::free, [&] {
            delete static_cast<failure_callback *>(self);
        });
    }
    static rmmc::resource
    make(const rmmc::resource &upstream, failure_callback_t &&function, void *argument)
    {
        rmmc::with_defaults<rmm_failure_callback_options_t> options;
        std::unique_ptr<failure_callback> kept(
            new failure_callback{std::move(function), argument});
        const bool is_any = !std::is_base_of<out_of_memory, Exception>::value;

        options.callback = run;
        options.arg = kept.get();
        options.flags = is_any ? RMM_FAILURE_CALLBACK_ANY : 0;
        options.destroy = destroy;
        rmmc::resource made = rmmc::detail::create(
            rmm_failure_callback_adaptor_create, upstream.get(),
            static_cast<const rmm_failure_callback_options_t *>(&options));
        kept.release();
        return made;
    }
};

} /* namespace detail */

template <RMM_COMPAT_UPSTREAM_PARAMETER class ExceptionType = out_of_memory>
class failure_callback_resource_adaptor : public detail::adaptor_over_upstream
{
  public:
    RMM_COMPAT_UPSTREAM_MEMBERS(failure_callback_resource_adaptor)

    using exception_type = ExceptionType; /**< calls back for this one only */

    failure_callback_resource_adaptor(
        detail::any_device_resource upstream, failure_callback_t callback,
        void *callback_arg)
        : adaptor_over_upstream(std::move(upstream), [&](const rmmc::resource &mr) {
              return detail::failure_callback<ExceptionType>::make(
                  mr, std::move(callback), callback_arg);
          })
    {
    }
};
RMM_COMPAT_DEDUCTION(failure_callback_resource_adaptor)

#if !RMM_COMPAT_CLASSIC
namespace detail
{
inline const bool failure_callback_resource_adaptor_is_known =
    knows<failure_callback_resource_adaptor<out_of_memory>>() &&
    knows<failure_callback_resource_adaptor<bad_alloc>>();
} /* namespace detail */
#endif

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_FAILURE_CALLBACK_RESOURCE_ADAPTOR_HPP */
