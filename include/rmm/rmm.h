/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/rmm.h
 *
 * Includes all headers that a program needs. Tests and tools include the simulated GPU
 * (rmm/sim.h) and the diagnosis hooks (rmm/sys/) by name.
 */
#ifndef RMM_RMM_H
#define RMM_RMM_H

#include <rmm/aligned_adaptor.h>
#include <rmm/arena_resource.h>
#include <rmm/async_managed_resource.h>
#include <rmm/async_resource.h>
#include <rmm/async_view_resource.h>
#include <rmm/auto_resource.h>
#include <rmm/binning_resource.h>
#include <rmm/callback_resource.h>
#include <rmm/cuda_resource.h>
#include <rmm/custom_resource.h>
#include <rmm/device.h>
#include <rmm/device_array.h>
#include <rmm/device_buffer.h>
#include <rmm/device_resource.h>
#include <rmm/device_scalar.h>
#include <rmm/failure_callback_adaptor.h>
#include <rmm/fallback_adaptor.h>
#include <rmm/fixed_size_resource.h>
#include <rmm/host_resource.h>
#include <rmm/limiting_adaptor.h>
#include <rmm/log.h>
#include <rmm/logging_adaptor.h>
#include <rmm/managed_resource.h>
#include <rmm/memory.h>
#include <rmm/observed_pool.h>
#include <rmm/pinned_resource.h>
#include <rmm/pool_resource.h>
#include <rmm/pool_sharing.h>
#include <rmm/pool_sleep.h>
#include <rmm/prefetch_adaptor.h>
#include <rmm/request_thread.h>
#include <rmm/resource.h>
#include <rmm/resource_spec.h>
#include <rmm/retry_adaptor.h>
#include <rmm/sam_headroom_resource.h>
#include <rmm/statistics_adaptor.h>
#include <rmm/status.h>
#include <rmm/stream.h>
#include <rmm/stream_pool.h>
#include <rmm/system_resource.h>
#include <rmm/thread_safe_adaptor.h>
#include <rmm/torch.h>
#include <rmm/tracking_adaptor.h>
#include <rmm/version.h>
#include <rmm/wait_adaptor.h>

#endif /* RMM_RMM_H */
