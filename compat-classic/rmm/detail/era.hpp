/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/era.hpp
 *
 * These headers have the interface of RMM 0.15 to 26.04. This folder comes before `compat` on the
 * include path: it has the headers that differ from today's, and `compat` has the others, the
 * classes of resources and the containers among them, which the macros below adapt.
 *
 * A resource is a class derived from rmm::mr::device_memory_resource, and what takes one takes its
 * address. A resource over an upstream is a class template: pool_memory_resource<Upstream>.
 */
#ifndef RMM_COMPAT_DETAIL_ERA_HPP
#define RMM_COMPAT_DETAIL_ERA_HPP

#include <rmm/cxx/hip.hpp>

#define RMM_COMPAT_CLASSIC 1

/* The version of RMM that the program was written for: 2112 for 21.12, 16 for 0.16; find_package(rmm)
 * defines it by the version that it was asked for (rmm/version_config.hpp). Only what no common form
 * serves follows it. Before 23.12 the containers name their resource by its address, as hipMM 23.12
 * does; before 23.08 a device_memory_resource is asked for multiples of 8 bytes; before 0.17 the
 * containers name their stream by its handle. All files of a program need the same. */
#if !defined(RMM_COMPAT_VERSION) && defined(RMM_VERSION_MAJOR)
#define RMM_COMPAT_VERSION (RMM_VERSION_MAJOR * 100 + RMM_VERSION_MINOR)
#elif !defined(RMM_COMPAT_VERSION)
#define RMM_COMPAT_VERSION 2604
#endif
#define RMM_COMPAT_BEFORE_REFERENCES (RMM_COMPAT_VERSION < 2312 || RMM_CXX_HAS_HIP)
#define RMM_COMPAT_HAS_PADDING (RMM_COMPAT_VERSION < 2308)
#define RMM_COMPAT_BEFORE_STREAM_VIEWS (RMM_COMPAT_VERSION < 17)

/* Before a class over an upstream; the first parameter of a class template over one. */
#define RMM_COMPAT_OVER_UPSTREAM template <class Upstream>
#define RMM_COMPAT_UPSTREAM_PARAMETER class Upstream,

/* Such a class has a function that makes one: make_pool(&upstream, ...), until RMM 24.10. */
#define RMM_COMPAT_MAKER(function, name)                                               \
    template <class Upstream, class... Arguments>                                      \
    name<Upstream> function(Upstream *upstream, Arguments &&...arguments)              \
    {                                                                                  \
        return name<Upstream>(upstream, std::forward<Arguments>(arguments)...);        \
    }

/* The functions of such a class that know the type of the upstream. Its memory is accessible to
 * the host if that of the upstream is. */
#define RMM_COMPAT_UPSTREAM_MEMBERS(name)                                              \
    /** The upstream, or NULL if it is no Upstream. */                                 \
    [[nodiscard]] Upstream *get_upstream() const noexcept                              \
    {                                                                                  \
        return this->template upstream_as<Upstream>();                                 \
    }                                                                                  \
    template <                                                                         \
        class Property,                                                                \
        class =                                                                        \
            std::enable_if_t<rmm::mr::detail::gets_from_upstream<Upstream, Property>>> \
    friend constexpr void get_property(const name &, Property) noexcept                \
    {                                                                                  \
    }

/* Behind such a class: its template argument from the type of the first argument. */
#define RMM_COMPAT_DEDUCTION(name)                                                     \
    template <class Upstream, class... More>                                           \
    name(Upstream *, More &&...) -> name<Upstream>;                                    \
    template <class Upstream, class... More>                                           \
    name(Upstream &, More &&...) -> name<Upstream>;

/* What became const, or was no longer. */
#define RMM_COMPAT_CLASSIC_CONST const

/* The default argument of a parameter that got or lost it. */
#define RMM_COMPAT_CLASSIC_DEFAULT(value) = value

/* The addresses of these classes are used directly, whatever they are. */
#define RMM_COMPAT_IS_KNOWN(name)

#endif /* RMM_COMPAT_DETAIL_ERA_HPP */
