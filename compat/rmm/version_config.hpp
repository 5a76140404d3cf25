/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/version_config.hpp
 *
 * The version of RMM: the newest whose interface these headers have, or the one that the program
 * asked find_package(rmm) for, which then is defined already. Those in between compile as well.
 */
#ifndef RMM_COMPAT_VERSION_CONFIG_HPP
#define RMM_COMPAT_VERSION_CONFIG_HPP

#include <rmm/detail/era.hpp>

#ifndef RMM_VERSION_MAJOR
#define RMM_VERSION_MAJOR 26
#define RMM_VERSION_PATCH 0
#if RMM_COMPAT_CLASSIC
#define RMM_VERSION_MINOR 4
#else
#define RMM_VERSION_MINOR 10
#endif
#endif

#define RMM_COMPAT_VERSION_TEXT(major, minor, patch) #major "." #minor "." #patch
#define RMM_COMPAT_VERSION_TEXT_OF(major, minor, patch)                                \
    RMM_COMPAT_VERSION_TEXT(major, minor, patch)
#ifndef RMM_VERSION
#define RMM_VERSION                                                                    \
    RMM_COMPAT_VERSION_TEXT_OF(RMM_VERSION_MAJOR, RMM_VERSION_MINOR, RMM_VERSION_PATCH)
#endif

/* As one number. The arguments are such as 26, 8, 0. */
#define RMM_COMPAT_VERSION_NUMBER(major, minor, patch)                                 \
    (((major)*1000 + (minor)) * 1000 + (patch))
#define RMM_COMPAT_THIS_VERSION                                                        \
    RMM_COMPAT_VERSION_NUMBER(RMM_VERSION_MAJOR, RMM_VERSION_MINOR, RMM_VERSION_PATCH)

#define RMM_VERSION_GT(major, minor, patch)                                            \
    (RMM_COMPAT_THIS_VERSION > RMM_COMPAT_VERSION_NUMBER(major, minor, patch))
#define RMM_VERSION_LT(major, minor, patch)                                            \
    (RMM_COMPAT_THIS_VERSION < RMM_COMPAT_VERSION_NUMBER(major, minor, patch))
#define RMM_VERSION_EQ(major, minor, patch)                                            \
    (RMM_COMPAT_THIS_VERSION == RMM_COMPAT_VERSION_NUMBER(major, minor, patch))

#endif /* RMM_COMPAT_VERSION_CONFIG_HPP */
