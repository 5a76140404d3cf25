/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/any_resource.hpp
 *
 * Type-erased resources for programs without CCCL 3.3: what rmm/detail/cccl.hpp uses instead
 * of cuda::mr::any_resource, resource_ref and synchronous_resource_ref. They take any class
 * with the four functions and operator==, and with a get_property() for each property:
 *
 *     void *allocate(stream, bytes, align);   void deallocate(stream, ptr, bytes, align);
 *     void *allocate_sync(bytes, align);      void deallocate_sync(ptr, bytes, align);
 *
 * Lifetime: any_resource keeps a copy of the object, and a copy of it copies the object. A
 * reference keeps the address of the object, also if it was made of an any_resource.
 *
 * Threads: as the object. Two any_resources may be used on two threads.
 */
#ifndef RMM_COMPAT_DETAIL_ANY_RESOURCE_HPP
#define RMM_COMPAT_DETAIL_ANY_RESOURCE_HPP

#include <cstddef>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <rmm/aligned.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/detail/properties.hpp>

namespace RMM_NAMESPACE
{
namespace detail
{

using stream_ref = cuda_stream_view;

template <class T, class Property, class = void> struct has_property : std::false_type {
};
template <class T, class Property>
struct has_property<
    T, Property,
    std::void_t<decltype(get_property(std::declval<const T &>(), Property()))>>
    : std::true_type {
};

template <class T, class = void> struct is_synchronous_resource : std::false_type {
};
template <class T>
struct is_synchronous_resource<
    T, std::void_t<
           decltype(std::declval<T &>().allocate_sync(std::size_t(), std::size_t())),
           decltype(std::declval<T &>().deallocate_sync(
               std::declval<void *>(), std::size_t(), std::size_t())),
           decltype(std::declval<const T &>() == std::declval<const T &>())>>
    : std::true_type {
};

template <class T, class = void> struct is_resource : std::false_type {
};
template <class T>
struct is_resource<
    T, std::void_t<
           decltype(std::declval<T &>().allocate(
               stream_ref(), std::size_t(), std::size_t())),
           decltype(std::declval<T &>().deallocate(
               stream_ref(), std::declval<void *>(), std::size_t(), std::size_t()))>>
    : is_synchronous_resource<T> {
};

/* How the functions of a T are called; specialised for classes whose functions have other names. */
template <class T, class = void> struct resource_calls {
    static void *
    allocate(T &object, stream_ref stream, std::size_t bytes, std::size_t align)
    {
        return object.allocate(stream, bytes, align);
    }
    static void deallocate(
        T &object, stream_ref stream, void *ptr, std::size_t bytes, std::size_t align)
    {
        object.deallocate(stream, ptr, bytes, align);
    }
    static void *allocate_sync(T &object, std::size_t bytes, std::size_t align)
    {
        return object.allocate_sync(bytes, align);
    }
    static void
    deallocate_sync(T &object, void *ptr, std::size_t bytes, std::size_t align)
    {
        object.deallocate_sync(ptr, bytes, align);
    }
};

/* The class that a T is named as: a base class of it, for those that have a common one. */
template <class T, class = void> struct named_as {
    using type = T;
};

/* The functions of one class. */
struct resource_table {
    const std::type_info *type;
    void *(*allocate)(void *, stream_ref, std::size_t, std::size_t); /* NULL: none */
    void (*deallocate)(void *, stream_ref, void *, std::size_t, std::size_t);
    void *(*allocate_sync)(void *, std::size_t, std::size_t);
    void (*deallocate_sync)(void *, void *, std::size_t, std::size_t);
    bool (*is_equal)(const void *, const void *);
    void *(*copy)(const void *);
    void (*destroy)(void *);
};

template <class T> struct resource_functions {
    static void *
    allocate(void *self, stream_ref stream, std::size_t bytes, std::size_t align)
    {
        return resource_calls<T>::allocate(
            *static_cast<T *>(self), stream, bytes, align);
    }
    static void deallocate(
        void *self, stream_ref stream, void *ptr, std::size_t bytes, std::size_t align)
    {
        resource_calls<T>::deallocate(
            *static_cast<T *>(self), stream, ptr, bytes, align);
    }
    static void *allocate_sync(void *self, std::size_t bytes, std::size_t align)
    {
        return resource_calls<T>::allocate_sync(*static_cast<T *>(self), bytes, align);
    }
    static void
    deallocate_sync(void *self, void *ptr, std::size_t bytes, std::size_t align)
    {
        resource_calls<T>::deallocate_sync(*static_cast<T *>(self), ptr, bytes, align);
    }
    static bool is_equal(const void *a, const void *b)
    {
        return *static_cast<const T *>(a) == *static_cast<const T *>(b);
    }
    /* NULL for what cannot be copied: only references name that. */
    static void *copy(const void *self)
    {
        if constexpr (std::is_copy_constructible<T>::value) {
            return new T(*static_cast<const T *>(self));
        } else {
            return nullptr;
        }
    }
    static void destroy(void *self)
    {
        delete static_cast<T *>(self);
    }
    static const resource_table *table()
    {
        if constexpr (is_resource<T>::value) {
            static const resource_table all = {
                &typeid(T),      allocate, deallocate, allocate_sync,
                deallocate_sync, is_equal, copy,       destroy};
            return &all;
        } else {
            static const resource_table synchronous = {
                &typeid(T),      nullptr,  nullptr, allocate_sync,
                deallocate_sync, is_equal, copy,    destroy};
            return &synchronous;
        }
    }
};

/* An object and its functions. What derives from it decides who owns the object. */
class erased_resource
{
  public:
    void *
    allocate_sync(std::size_t bytes, std::size_t align = CUDA_ALLOCATION_ALIGNMENT)
    {
        return table_->allocate_sync(object_, bytes, align);
    }
    void deallocate_sync(
        void *ptr, std::size_t bytes,
        std::size_t align = CUDA_ALLOCATION_ALIGNMENT) noexcept
    {
        table_->deallocate_sync(object_, ptr, bytes, align);
    }

    friend bool operator==(const erased_resource &a, const erased_resource &b)
    {
        return a.object_ == b.object_ ||
               (a.object_ != nullptr && b.object_ != nullptr &&
                *a.table_->type == *b.table_->type &&
                a.table_->is_equal(a.object_, b.object_));
    }
    friend bool operator!=(const erased_resource &a, const erased_resource &b)
    {
        return !(a == b);
    }
    /* Is the object a T, and equal to this one? */
    template <class T> bool is_equal_to(const T &object) const
    {
        using named = typename named_as<T>::type;
        const named &other = object;

        return object_ == static_cast<const void *>(&other) ||
               (object_ != nullptr && *table_->type == typeid(named) &&
                table_->is_equal(object_, &other));
    }
    /* The object if it is a T, else NULL. */
    template <class T> friend T *resource_cast(erased_resource *erased) noexcept
    {
        return erased->object_ != nullptr && *erased->table_->type == typeid(T)
                   ? static_cast<T *>(erased->object_)
                   : nullptr;
    }

  protected:
    erased_resource() = default;
    template <class T>
    explicit erased_resource(T *object) noexcept
        : object_(static_cast<typename named_as<T>::type *>(object)),
          table_(resource_functions<typename named_as<T>::type>::table())
    {
    }

    void *object_ = nullptr;
    const resource_table *table_ = nullptr;
};

/* Declared here, so that a call with a template argument finds it. */
template <class T> T *resource_cast(erased_resource *erased) noexcept;

class erased_stream_resource : public erased_resource
{
  public:
    void *allocate(
        stream_ref stream, std::size_t bytes,
        std::size_t align = CUDA_ALLOCATION_ALIGNMENT)
    {
        return table_->allocate(object_, stream, bytes, align);
    }
    void deallocate(
        stream_ref stream, void *ptr, std::size_t bytes,
        std::size_t align = CUDA_ALLOCATION_ALIGNMENT) noexcept
    {
        table_->deallocate(object_, stream, ptr, bytes, align);
    }

  protected:
    using erased_resource::erased_resource;
};

/* Is T an object of the program, and none of the classes of this file? */
template <class T>
inline constexpr bool is_plain_object = !std::is_base_of<erased_resource, T>::value;

/* Is Erased one of the classes of this file, and T an object that one of them could name? */
template <class Erased, class T>
inline constexpr bool is_erased_and_object = std::conjunction<
    std::is_base_of<erased_resource, Erased>,
    std::negation<std::is_base_of<erased_resource, T>>,
    is_synchronous_resource<T>>::value;

/** Does `a` name an object of this class that is equal to `b`? */
template <
    class Erased, class T, std::enable_if_t<is_erased_and_object<Erased, T>, int> = 0>
bool operator==(const Erased &a, const T &b)
{
    return a.is_equal_to(b);
}
template <
    class Erased, class T, std::enable_if_t<is_erased_and_object<Erased, T>, int> = 0>
bool operator!=(const Erased &a, const T &b)
{
    return !a.is_equal_to(b);
}
template <
    class Erased, class T, std::enable_if_t<is_erased_and_object<Erased, T>, int> = 0>
bool operator==(const T &a, const Erased &b)
{
    return b.is_equal_to(a);
}
template <
    class Erased, class T, std::enable_if_t<is_erased_and_object<Erased, T>, int> = 0>
bool operator!=(const T &a, const Erased &b)
{
    return !b.is_equal_to(a);
}

template <class Base, class... Properties> struct memory_of : Base {
    template <
        class Property,
        class = std::enable_if_t<(std::is_same<Property, Properties>::value || ...)>>
    friend constexpr void get_property(const memory_of &, Property) noexcept
    {
    }

  protected:
    using Base::Base;
};

template <class... Properties>
class resource_ref : public memory_of<erased_stream_resource, Properties...>
{
  public:
    template <
        class T, class = std::enable_if_t<
                     is_plain_object<T> && is_resource<T>::value &&
                     (has_property<T, Properties>::value && ...)>>
    resource_ref(T &object) noexcept
        : memory_of<erased_stream_resource, Properties...>(&object)
    {
    }
    template <
        class T,
        class = std::enable_if_t<
            std::is_base_of<erased_stream_resource, T>::value &&
            (has_property<T, Properties>::value && ...)>,
        class = void>
    resource_ref(const T &other) noexcept
    {
        static_cast<erased_resource &>(*this) = other;
    }
    resource_ref(const resource_ref &) = default;
    resource_ref &operator=(const resource_ref &) = default;
};

template <class... Properties>
class synchronous_resource_ref : public memory_of<erased_resource, Properties...>
{
  public:
    template <
        class T, class = std::enable_if_t<
                     is_plain_object<T> && is_synchronous_resource<T>::value &&
                     (has_property<T, Properties>::value && ...)>>
    synchronous_resource_ref(T &object) noexcept
        : memory_of<erased_resource, Properties...>(&object)
    {
    }
    template <
        class T,
        class = std::enable_if_t<
            std::is_base_of<erased_resource, T>::value &&
            (has_property<T, Properties>::value && ...)>,
        class = void>
    synchronous_resource_ref(const T &other) noexcept
    {
        static_cast<erased_resource &>(*this) = other;
    }
    synchronous_resource_ref(const synchronous_resource_ref &) = default;
    synchronous_resource_ref &operator=(const synchronous_resource_ref &) = default;
};

template <class... Properties>
class any_resource : public memory_of<erased_stream_resource, Properties...>
{
  public:
    template <
        class T,
        class = std::enable_if_t<
            is_plain_object<std::decay_t<T>> && is_resource<std::decay_t<T>>::value &&
            (has_property<std::decay_t<T>, Properties>::value && ...)>>
    any_resource(T &&object)
        : memory_of<erased_stream_resource, Properties...>(
              new std::decay_t<T>(std::forward<T>(object)))
    {
    }
    /* A copy of the object that a reference or another any_resource names. */
    template <
        class T,
        class = std::enable_if_t<
            std::is_base_of<erased_stream_resource, std::decay_t<T>>::value &&
            (has_property<std::decay_t<T>, Properties>::value && ...)>,
        class = void>
    any_resource(T &&other)
    {
        copy_of(other);
    }
    any_resource(const any_resource &other)
        : memory_of<erased_stream_resource, Properties...>()
    {
        copy_of(other);
    }
    any_resource(any_resource &&other) noexcept
        : memory_of<erased_stream_resource, Properties...>(other)
    {
        other.object_ = nullptr;
    }
    any_resource &operator=(any_resource other) noexcept
    {
        std::swap(this->object_, other.object_);
        std::swap(this->table_, other.table_);
        return *this;
    }
    ~any_resource()
    {
        if (this->object_ != nullptr) {
            this->table_->destroy(this->object_);
        }
    }

  private:
    void copy_of(const erased_resource &other)
    {
        static_cast<erased_resource &>(*this) = other;
        if (this->object_ != nullptr) {
            void *shared = std::exchange(this->object_, nullptr);
            this->object_ = this->table_->copy(shared);
        }
    }
};

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DETAIL_ANY_RESOURCE_HPP */
