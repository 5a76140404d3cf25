/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/rmm.hpp
 *
 * The library for C++17 and newer: includes all of rmm/cxx/, but for what needs Thrust
 * (rmm/cxx/thrust.hpp). Header only, in the namespace rmmc: values that own a reference of a C
 * object, and exceptions in place of statuses. Everything else is the C library's, whose
 * headers (rmm/rmm.h) document the behaviour. docs/cxx.md is the introduction.
 *
 * CCCL: where <cuda/memory_resource> can be included, resources get CCCL's properties, and go
 * into its cuda::mr::resource_ref and others (rmm/cxx/cccl.hpp). Define RMM_CXX_NO_CCCL to
 * leave that out. RMM_CXX_HAS_CCCL is 1 or 0.
 */
#ifndef RMM_RMM_HPP
#define RMM_RMM_HPP

#include <rmm/cxx/error.hpp>

#if defined(__cpp_exceptions) /* else that header refused to compile */
#include <rmm/cxx/adaptors.hpp>
#include <rmm/cxx/allocators.hpp>
#include <rmm/cxx/callback.hpp>
#include <rmm/cxx/custom.hpp>
#include <rmm/cxx/device.hpp>
#include <rmm/cxx/device_array.hpp>
#include <rmm/cxx/device_buffer.hpp>
#include <rmm/cxx/device_scalar.hpp>
#include <rmm/cxx/hip.hpp>
#include <rmm/cxx/logging.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/cxx/resources.hpp>
#include <rmm/cxx/sharing.hpp>
#include <rmm/cxx/shortage.hpp>
#include <rmm/cxx/statistics.hpp>
#include <rmm/cxx/stream.hpp>
#include <rmm/rmm.h>

#if !defined(RMM_CXX_NO_CCCL) && defined(__has_include)
#if __has_include(<cuda/memory_resource>) && __has_include(<cuda_runtime_api.h>)
#include <rmm/cxx/cccl.hpp>
#endif
#endif
#ifndef RMM_CXX_HAS_CCCL
#define RMM_CXX_HAS_CCCL 0
#endif

#endif /* exceptions */
#endif /* RMM_RMM_HPP */
