# SPDX-License-Identifier: Apache-2.0
"""What the tests of the order of work share: contents that are still on their way."""
import random

import rmm_c as rmm
from rmm_c.pylibrmm.stream import CudaStreamFlags, Stream

BYTES = 4096


def non_blocking():
    """A stream that the legacy default stream does not wait for, as PyTorch's."""
    return Stream(flags=CudaStreamFlags.NON_BLOCKING)


def contents(seed, count=BYTES):
    """Bytes, others for each seed."""
    return random.Random(seed).randbytes(count)


def queued(want, stream):
    """A buffer whose contents are still on their way, on its stream."""
    return rmm.DeviceBuffer.to_device(want, stream).copy()
