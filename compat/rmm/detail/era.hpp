/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/era.hpp
 *
 * Which interface of RMM these headers have: that of 26.06 and newer. The folder compat-classic
 * has another file of this name, for the interface of 0.15 to 26.04, whose resources over an
 * upstream are class templates and whose functions for streams have default arguments. The
 * headers of the classes are the same for both.
 */
#ifndef RMM_COMPAT_DETAIL_ERA_HPP
#define RMM_COMPAT_DETAIL_ERA_HPP

#define RMM_COMPAT_CLASSIC 0

/* Before a class over an upstream; the first parameter of a class template over one; and the
 * functions that such a class had. */
#define RMM_COMPAT_OVER_UPSTREAM
#define RMM_COMPAT_UPSTREAM_PARAMETER
#define RMM_COMPAT_UPSTREAM_MEMBERS(name)

/* Behind a class over an upstream: its template argument from the type of the first argument. */
#define RMM_COMPAT_DEDUCTION(name)

/* Behind it: a function that makes one. */
#define RMM_COMPAT_MAKER(function, name)

/* What became const, or was no longer. */
#define RMM_COMPAT_CLASSIC_CONST

/* The default argument of a parameter that got or lost it. */
#define RMM_COMPAT_CLASSIC_DEFAULT(value)

/* Behind a class of resources, in rmm::mr::detail: as an upstream it is used directly. */
#define RMM_COMPAT_IS_KNOWN(name) inline const bool name##_is_known = knows<name>();

#endif /* RMM_COMPAT_DETAIL_ERA_HPP */
