/* SPDX-License-Identifier: Apache-2.0 */
/** @file rmm/detail/runtime_async_alloc.hpp  As RMM until 25.08. */
#ifndef RMM_COMPAT_DETAIL_RUNTIME_ASYNC_ALLOC_HPP
#define RMM_COMPAT_DETAIL_RUNTIME_ASYNC_ALLOC_HPP
#include <rmm/detail/dynamic_load_runtime.hpp>
#endif
