# SPDX-License-Identifier: Apache-2.0
"""Memory resources and adaptors, and the default resource of each device."""
from rmm_c.mr import experimental
from rmm_c.pylibrmm import memory_resource
from rmm_c.pylibrmm.memory_resource import *  # noqa: F403

__all__ = ["experimental"]
__all__ += memory_resource.__all__
