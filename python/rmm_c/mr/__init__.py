# SPDX-License-Identifier: Apache-2.0
"""Memory resources and adaptors, and the default resource of each device."""
from rmm_c.mr import experimental
from rmm_c.pylibrmm import memory_resource
from rmm_c.pylibrmm.memory_resource import (
    AlignedResourceAdaptor,
    ArenaMemoryResource,
    BinningMemoryResource,
    CallbackMemoryResource,
    CudaAsyncManagedMemoryResource,
    CudaAsyncMemoryResource,
    CudaAsyncViewMemoryResource,
    CudaMemoryResource,
    DeviceMemoryResource,
    FailureCallbackResourceAdaptor,
    FixedSizeMemoryResource,
    HostMemoryResource,
    LimitingResourceAdaptor,
    LoggingResourceAdaptor,
    ManagedMemoryResource,
    PinnedHostMemoryResource,
    PoolMemoryResource,
    PrefetchResourceAdaptor,
    ResourceStats,
    SamHeadroomMemoryResource,
    StatisticsResourceAdaptor,
    SystemMemoryResource,
    ThreadSafeResourceAdaptor,
    TrackingResourceAdaptor,
    UpstreamResourceAdaptor,
    VirtualPoolMemoryResource,
    available_device_memory,
    check_spec,
    disable_logging,
    enable_logging,
    from_spec,
    get_current_device_resource,
    get_log_filenames,
    get_per_device_resource,
    is_initialized,
    set_current_device_resource,
    set_per_device_resource,
)

__all__ = ["experimental"]
__all__ += memory_resource.__all__
