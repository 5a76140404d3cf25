/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/custom.hpp
 *
 * Objects of the program as resources: any class with the functions of CCCL's memory
 * resources (custom_resource), or two functions (callback_resource). Both work wherever a
 * resource does: below pools and adaptors, and as a default.
 *
 * Lifetime: the resource owns a copy of the object, which ends with the resource. Of
 * std::ref(object) it copies the reference: that object has to live longer. The object's
 * functions must not create or end the resource that they run for.
 *
 * Threads: the functions run on the threads that use the resource, several at once.
 *
 * Exceptions: an exception of the object fails the allocation. It comes out at the C++ caller
 * of that allocation as it was thrown (rmm/cxx/callback.hpp). For resources in between its
 * status counts: that of an rmmc exception, RMM_ERR_OUT_OF_MEMORY for another
 * std::bad_alloc, else RMM_ERR_BAD_ALLOC. A class that knows better has a function
 * `static rmm_status_t exception_status() noexcept`, which runs in a handler of the exception
 * (rmm/cxx/cccl.hpp has one). A pool tries other ways before it gives up.
 */
#ifndef RMM_CXX_CUSTOM_HPP
#define RMM_CXX_CUSTOM_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <rmm/custom_resource.h>
#include <rmm/cxx/callback.hpp>
#include <rmm/cxx/resource.hpp>

namespace rmmc
{
namespace detail
{

/* Which functions a class has: those of CCCL since 3.1 first, then those before. */
template <class T, class = void> struct has_stream_functions : std::false_type {
};
template <class T>
struct has_stream_functions<
    T, std::void_t<
           decltype(static_cast<void *>(std::declval<T &>().allocate(
               std::declval<rmm_stream_t>(), std::size_t(), std::size_t()))),
           decltype(std::declval<T &>().deallocate(
               std::declval<rmm_stream_t>(), std::declval<void *>(), std::size_t(),
               std::size_t()))>> : std::true_type {
};

template <class T, class = void> struct has_sync_functions : std::false_type {
};
template <class T>
struct has_sync_functions<
    T, std::void_t<
           decltype(static_cast<void *>(
               std::declval<T &>().allocate_sync(std::size_t(), std::size_t()))),
           decltype(std::declval<T &>().deallocate_sync(
               std::declval<void *>(), std::size_t(), std::size_t()))>>
    : std::true_type {
};

template <class T, class = void> struct has_async_functions : std::false_type {
};
template <class T>
struct has_async_functions<
    T, std::void_t<
           decltype(static_cast<void *>(std::declval<T &>().allocate_async(
               std::size_t(), std::size_t(), std::declval<rmm_stream_t>()))),
           decltype(std::declval<T &>().deallocate_async(
               std::declval<void *>(), std::size_t(), std::size_t(),
               std::declval<rmm_stream_t>()))>> : std::true_type {
};

template <class T, class = void> struct has_plain_functions : std::false_type {
};
template <class T>
struct has_plain_functions<
    T, std::void_t<
           decltype(static_cast<void *>(
               std::declval<T &>().allocate(std::size_t(), std::size_t()))),
           decltype(std::declval<T &>().deallocate(
               std::declval<void *>(), std::size_t(), std::size_t()))>>
    : std::true_type {
};

template <class T> struct memory_functions {
    static constexpr bool in_stream_order =
        has_stream_functions<T>::value || has_async_functions<T>::value;
    static constexpr bool synchronous =
        has_sync_functions<T>::value || has_plain_functions<T>::value;

    static void *
    allocate(T &object, std::size_t bytes, std::size_t align, rmm_stream_t stream)
    {
        if constexpr (has_stream_functions<T>::value) {
            return object.allocate(stream, bytes, align);
        } else if constexpr (has_async_functions<T>::value) {
            return object.allocate_async(bytes, align, stream);
        } else {
            return allocate_sync(object, bytes, align);
        }
    }
    static void deallocate(
        T &object, void *ptr, std::size_t bytes, std::size_t align, rmm_stream_t stream)
    {
        if constexpr (has_stream_functions<T>::value) {
            object.deallocate(stream, ptr, bytes, align);
        } else if constexpr (has_async_functions<T>::value) {
            object.deallocate_async(ptr, bytes, align, stream);
        } else { /* work on the stream may still use the block */
            (void)!rmm_stream_synchronize(stream);
            deallocate_sync(object, ptr, bytes, align);
        }
    }
    static void *allocate_sync(T &object, std::size_t bytes, std::size_t align)
    {
        if constexpr (has_sync_functions<T>::value) {
            return object.allocate_sync(bytes, align);
        } else {
            return object.allocate(bytes, align);
        }
    }
    static void
    deallocate_sync(T &object, void *ptr, std::size_t bytes, std::size_t align)
    {
        if constexpr (has_sync_functions<T>::value) {
            object.deallocate_sync(ptr, bytes, align);
        } else {
            object.deallocate(ptr, bytes, align);
        }
    }
};
template <class T, class = void> struct has_equality : std::false_type {
};
template <class T>
struct has_equality<
    T, std::void_t<decltype(static_cast<bool>(
           std::declval<const T &>() == std::declval<const T &>()))>> : std::true_type {
};

/* std::ref(object) stands for the object. */
template <class T> T &object_of(T &object) noexcept
{
    return object;
}
template <class T> T &object_of(std::reference_wrapper<T> &reference) noexcept
{
    return reference.get();
}

/* Held may know better what an exception means. */
template <class Held, class = void> struct status_of_exception {
    static rmm_status_t get() noexcept
    {
        return default_exception_status();
    }
};
template <class Held>
struct status_of_exception<Held, std::void_t<decltype(Held::exception_status())>> {
    static rmm_status_t get() noexcept
    {
        return Held::exception_status();
    }
};

/* The functions that the C library gets for an object of class Held. */
template <class Held> struct custom_functions {
    using object_type =
        std::remove_reference_t<decltype(object_of(std::declval<Held &>()))>;
    using functions = memory_functions<object_type>;

    static object_type &object(const void *payload) noexcept
    {
        return object_of(*static_cast<Held *>(const_cast<void *>(payload)));
    }
    static rmm_status_t alloc(
        std::size_t bytes, std::size_t align, rmm_stream_t stream, void *payload,
        void **ptr_out)
    {
        return run_alloc(
            [&] {
                *ptr_out = functions::allocate(
                    object(payload), bytes, align, handle_of_c(stream));
            },
            status_of_exception<Held>::get);
    }
    static void dealloc(
        void *ptr, std::size_t bytes, std::size_t align, rmm_stream_t stream,
        void *payload)
    {
        run_void(callback_kind::free, [&] {
            functions::deallocate(
                object(payload), ptr, bytes, align, handle_of_c(stream));
        });
    }
    static rmm_status_t
    alloc_sync(std::size_t bytes, std::size_t align, void *payload, void **ptr_out)
    {
        return run_alloc(
            [&] { *ptr_out = functions::allocate_sync(object(payload), bytes, align); },
            status_of_exception<Held>::get);
    }
    static void
    dealloc_sync(void *ptr, std::size_t bytes, std::size_t align, void *payload)
    {
        run_void(callback_kind::free, [&] {
            functions::deallocate_sync(object(payload), ptr, bytes, align);
        });
    }
    static bool is_equal(const void *payload, const void *other)
    {
        return run_bool(callback_kind::free, [&] {
            const object_type &a = object(payload), &b = object(other);
            if constexpr (has_equality<object_type>::value) {
                return static_cast<bool>(a == b);
            } else {
                return &a == &b;
            }
        });
    }
    static void destroy(void *payload)
    {
        run_void(callback_kind::free, [&] { delete static_cast<Held *>(payload); });
    }
};

/* flags: as rmm_custom_resource_ops_t. */
template <class Held>
resource create_custom(
    Held object, std::uint32_t properties, const char *name, std::uint32_t flags = 0)
{
    using used = custom_functions<Held>;
    with_defaults<rmm_custom_resource_ops_t> ops;
    std::unique_ptr<Held> payload(new Held(std::move(object)));

    ops.alloc = used::alloc;
    ops.dealloc = used::dealloc;
    if constexpr (used::functions::synchronous) {
        ops.alloc_sync = used::alloc_sync;
        ops.dealloc_sync = used::dealloc_sync;
    }
    ops.is_equal = used::is_equal;
    ops.destroy = used::destroy;
    ops.name = name;
    ops.properties = properties;
    ops.flags = flags;
    resource created = create(
        rmm_custom_resource_create,
        static_cast<const rmm_custom_resource_ops_t *>(&ops),
        static_cast<void *>(payload.get()));
    payload.release();
    return created;
}

/* Two functions as an object of the shape that custom_functions expects. */
template <class Allocate, class Deallocate> struct function_pair {
    Allocate allocate_function;
    Deallocate deallocate_function;

    void *allocate(rmm_stream_t stream, std::size_t bytes, std::size_t)
    {
        return allocate_function(bytes, stream_view(stream));
    }
    void deallocate(rmm_stream_t stream, void *ptr, std::size_t bytes, std::size_t)
    {
        deallocate_function(ptr, bytes, stream_view(stream));
    }
};

} /* namespace detail */

/** Can custom_resource be made of a @p T? */
template <class T>
inline constexpr bool is_custom_memory_v =
    detail::memory_functions<T>::in_stream_order ||
    detail::memory_functions<T>::synchronous;

#if defined(__cpp_concepts) && __cpp_concepts >= 201907L
/** The same as a concept. */
template <class T>
concept custom_memory = is_custom_memory_v<T>;
#endif

/**
 * A resource over an object of the program. The object has at least one of these pairs, the
 * names of CCCL since 3.1 or those before it; ptr is aligned to at least `align`:
 *
 *     void *allocate(stream, bytes, align);        void deallocate(stream, ptr, bytes, align);
 *     void *allocate_sync(bytes, align);           void deallocate_sync(ptr, bytes, align);
 *     void *allocate_async(bytes, align, stream);
 *                                 void deallocate_async(ptr, bytes, align, stream);
 *     void *allocate(bytes, align);                void deallocate(ptr, bytes, align);
 *
 * The stream is an rmm_stream_t, from which cuda::stream_ref and RMM's cuda_stream_view are
 * made. Without a pair in stream order a free waits for its stream. Objects of one class
 * with operator== are equal if it says so.
 */
template <std::uint32_t Properties = RMM_DEVICE_ACCESSIBLE>
class custom_resource : public resource_with<Properties>
{
  public:
    static constexpr const char *type_name = "custom";

    template <
        class T, class = std::enable_if_t<
                     !std::is_same<std::decay_t<T>, detail::as_is>::value &&
                     !std::is_base_of<custom_resource, std::decay_t<T>>::value>>
    explicit custom_resource(T &&object, const char *name = nullptr)
        : resource_with<Properties>(detail::create_custom<std::decay_t<T>>(
              std::forward<T>(object), Properties, name))
    {
        static_assert(
            is_custom_memory_v<
                typename detail::custom_functions<std::decay_t<T>>::object_type>,
            "the class has none of the pairs of functions that rmm/cxx/custom.hpp "
            "lists");
    }
    custom_resource(detail::as_is, resource mr)
        : resource_with<Properties>(std::move(mr))
    {
    }
};
template <class T> explicit custom_resource(T) -> custom_resource<>;
template <class T> custom_resource(T, const char *) -> custom_resource<>;

/**
 * A resource over two functions: allocate(bytes, stream_view), which returns at least 256-
 * aligned memory, and deallocate(ptr, bytes, stream_view). Its type is "custom".
 */
template <std::uint32_t Properties = RMM_DEVICE_ACCESSIBLE>
class callback_resource : public resource_with<Properties>
{
  public:
    template <class Allocate, class Deallocate>
    callback_resource(
        Allocate allocates, Deallocate deallocates, const char *name = "callback")
        : resource_with<Properties>(detail::create_custom(
              detail::function_pair<Allocate, Deallocate>{
                  std::move(allocates), std::move(deallocates)},
              Properties, name))
    {
    }
};
template <class Allocate, class Deallocate>
callback_resource(Allocate, Deallocate) -> callback_resource<>;
template <class Allocate, class Deallocate>
callback_resource(Allocate, Deallocate, const char *) -> callback_resource<>;

} /* namespace rmmc */

#endif /* RMM_CXX_CUSTOM_HPP */
