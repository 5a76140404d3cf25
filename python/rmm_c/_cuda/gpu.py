# SPDX-License-Identifier: Apache-2.0
"""
Questions about devices and versions of CUDA, as RMM has them.

The devices are those of the library. For the rest the driver's library is asked, so no other
package is needed; only getDeviceProperties() and the enumerations of CUDA, which RMM had here until
21.12, are those of cuda.bindings. On the simulated GPU and on AMD's, the attributes are what the
library knows of a device, and the versions are those of CUDA 13.0.
"""
import ctypes
import importlib
from typing import Any, Callable, Tuple, Type

from rmm_c import _core
from rmm_c.errors import NoDeviceError, RMMError

_NO_DEVICE, _INVALID_DEVICE, _NOT_SUPPORTED, _UNKNOWN = 100, 101, 801, 999
_SIMULATED_VERSION = 13000

# Of cudaDeviceAttr: managed, pageable and concurrently accessed memory, mapped memory, memory pools
_ABILITY_OF_ATTRIBUTE = {
    83: _core.ABILITY_MANAGED,
    88: _core.ABILITY_SYSTEM,
    89: _core.ABILITY_ASYNC_MANAGED,
    102: _core.ABILITY_POOL_VIRTUAL,
    115: _core.ABILITY_ASYNC,
}


def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _text_of(status: int) -> str:
    """The name and the meaning of a code, which driver and runtime have in common."""
    name, meaning = ctypes.c_char_p(), ctypes.c_char_p()
    try:
        _driver().cuGetErrorName(status, ctypes.byref(name))
        _driver().cuGetErrorString(status, ctypes.byref(meaning))
    except OSError:  # no driver: the simulated GPU
        pass
    parts = [part.value.decode() for part in (name, meaning) if part.value]
    return ": ".join(parts) or f"error {status} of CUDA"


class CUDARuntimeError(RuntimeError):
    """A call of the CUDA runtime failed; ``status`` is its code."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(_text_of(int(status)))

    def __reduce__(self) -> Tuple[Type["CUDARuntimeError"], Tuple[int]]:
        return type(self), (self.status,)


class CUDADriverError(RuntimeError):
    """A call of the CUDA driver failed; ``status`` is its code."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(_text_of(int(status)))

    def __reduce__(self) -> Tuple[Type["CUDADriverError"], Tuple[int]]:
        return type(self), (self.status,)


def _of_library(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except NoDeviceError:
        raise CUDARuntimeError(_NO_DEVICE) from None
    except RMMError as error:
        raise CUDARuntimeError(_UNKNOWN) from error


def _from_driver(error: Callable[[int], RuntimeError], name: str, *arguments: Any) -> None:
    status = getattr(_driver(), name)(*arguments)
    if status != 0:
        raise error(status)


def _check(device: int) -> None:
    if not 0 <= device < getDeviceCount():
        raise CUDARuntimeError(_INVALID_DEVICE)


def driverGetVersion() -> int:
    """The newest CUDA that the driver supports: 1000 * major + 10 * minor; 0 without a driver."""
    if _core.driver_name() != "cuda":
        return _SIMULATED_VERSION
    version = ctypes.c_int()
    try:
        _from_driver(CUDARuntimeError, "cuDriverGetVersion", ctypes.byref(version))
    except OSError:
        return 0
    return version.value


def runtimeGetVersion() -> int:
    """The version of the CUDA runtime that cuda.bindings has, else that of the driver: the
    library's own runtime is linked to it."""
    if _core.driver_name() != "cuda":
        return _SIMULATED_VERSION
    try:
        runtime = importlib.import_module("cuda.bindings.runtime")
        status, version = runtime.cudaRuntimeGetVersion()
    except ImportError:
        return driverGetVersion()
    if status != 0:
        raise CUDARuntimeError(status)
    return int(version)


def getDevice() -> int:
    """The current device."""
    return int(_of_library(_core.device_current))


def setDevice(device: int) -> None:
    """Make a device the current one of this thread."""
    _check(device)
    _of_library(_core.device_set, device)


def getDeviceCount() -> int:
    """The number of devices."""
    return int(_of_library(_core.device_count))


def getDeviceAttribute(attr: int, device: int) -> int:
    """An attribute of a device: a member of cudaDeviceAttr, or its number."""
    _check(device)
    if _core.driver_name() == "cuda":
        value = ctypes.c_int()
        _from_driver(
            CUDARuntimeError, "cuDeviceGetAttribute", ctypes.byref(value), int(attr), device
        )
        return value.value
    ability = _ABILITY_OF_ATTRIBUTE.get(int(attr))
    if ability is not None:
        return int(_core.device_supports(device, ability))
    if _core.driver_name() == "sim":
        return 0
    raise CUDARuntimeError(_NOT_SUPPORTED)


def getDeviceProperties(device: int) -> Any:
    """All of them, as cuda.bindings represents them."""
    _check(device)
    runtime = importlib.import_module("cuda.bindings.runtime")
    status, properties = runtime.cudaGetDeviceProperties(device)
    if status != 0:
        raise CUDARuntimeError(status)
    return properties


def deviceGetName(device: int) -> str:
    """The name of a device."""
    _check(device)
    if _core.driver_name() != "cuda":
        return f"{_core.driver_name()} {device}"
    name = ctypes.create_string_buffer(256)
    _from_driver(CUDADriverError, "cuDeviceGetName", name, len(name), device)
    return name.value.decode()


_ENUMERATIONS = {"cudaError": "cudaError_t", "cudaDeviceAttr": "cudaDeviceAttr"}


def __getattr__(name: str) -> Any:
    if name not in _ENUMERATIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("cuda.bindings.runtime"), _ENUMERATIONS[name])
