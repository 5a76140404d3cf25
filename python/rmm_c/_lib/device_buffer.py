# SPDX-License-Identifier: Apache-2.0
"""Buffers and copies, where RMM had them until 24.12."""
from rmm_c.pylibrmm.device_buffer import (
    DeviceBuffer,
    copy_device_to_ptr,
    copy_host_to_ptr,
    copy_ptr_to_host,
    to_device,
)

__all__ = [
    "DeviceBuffer",
    "copy_device_to_ptr",
    "copy_host_to_ptr",
    "copy_ptr_to_host",
    "to_device",
]
