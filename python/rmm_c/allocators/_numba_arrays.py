# SPDX-License-Identifier: Apache-2.0
"""Numba's arrays over memory of the default resource, as RMM made them until 0.16."""
from typing import Any, Callable, Optional, Tuple, Union

import numpy
from numba import cuda

from rmm_c.allocators.numba import _pointer
from rmm_c.pylibrmm.device_buffer import DeviceBuffer

Shape = Union[int, Tuple[int, ...]]


def _array(shape: Shape, strides: Any, dtype: Any, memory: Any) -> Any:
    return cuda.cudadrv.devicearray.DeviceNDArray(shape, strides, dtype, gpu_data=memory)


def _memory(address: int, size: int, **owner: Any) -> Any:
    return cuda.cudadrv.driver.MemoryPointer(
        cuda.current_context(), _pointer(address), size, **owner
    )


def _strides(shape: Tuple[int, ...], item: int, order: str) -> Tuple[int, ...]:
    """Those of a contiguous array in C's or Fortran's order."""
    strides = []
    for extent in shape if order == "F" else reversed(shape):
        strides.append(item)
        item *= extent
    return tuple(strides if order == "F" else reversed(strides))


def device_array(
    shape: Shape, dtype: Any = float, strides: Any = None, order: str = "C", stream: Any = 0
) -> Any:
    """An array of Numba, not initialised, in memory of the default resource."""
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    item = numpy.dtype(dtype)
    chosen = _strides(extents, item.itemsize, order) if strides is None else strides
    chosen = (chosen,) if isinstance(chosen, int) else tuple(chosen)
    size = item.itemsize
    for extent, stride in zip(extents, chosen):
        size = 0 if extent == 0 or size == 0 else size + (extent - 1) * abs(stride)
    buffer = DeviceBuffer(size=size, stream=stream)
    return _array(extents, chosen, item, _memory(buffer.ptr, size, owner=buffer))


def device_array_like(ary: Any, stream: Any = 0) -> Any:
    """An array of Numba with the shape, type and strides of another one."""
    if ary.ndim == 0:
        ary = ary.reshape(1)
    return device_array(ary.shape, ary.dtype, ary.strides, stream=stream)


def device_array_from_ptr(
    ptr: int, nelem: int, dtype: Any = float, finalizer: Optional[Callable[[], None]] = None
) -> Any:
    """An array of Numba over ``nelem`` elements at an address, which is somebody else's to free."""
    item = numpy.dtype("datetime64[ms]" if dtype == numpy.datetime64 else dtype)
    memory = _memory(ptr, item.itemsize * nelem, finalizer=finalizer)
    return _array((nelem,), (item.itemsize,), item, memory)


def to_device(ary: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> Any:
    """Copy a NumPy array to an array of Numba, by default a new one."""
    if to is None:
        to = device_array_like(ary, stream)
        copy = True
    if copy:
        to.copy_to_device(ary, stream=stream)
    return to
