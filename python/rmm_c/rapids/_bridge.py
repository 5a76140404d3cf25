# SPDX-License-Identifier: Apache-2.0
"""Loads what _build.py compiles, after a look at whether it fits the RMM of this process."""
import ctypes
import threading
from types import ModuleType
from typing import Any, Optional

from rmm_c import _core
from rmm_c.rapids._build import RapidsError, build, import_rmm

__all__ = ["Bridge", "RapidsError", "bridge", "build"]


class Bridge:
    """The loaded module, and the classes of RMM that it works on."""

    def __init__(self, rmm: ModuleType, library: Any) -> None:
        self.rmm = rmm
        self.library = library
        self.base = rmm.mr.DeviceMemoryResource
        names = {"__repr__": _repr, "__doc__": _DOC}
        self.kind: Any = type("RmmCMemoryResource", (self.base,), names)

    def slot_of(self, mr: Any) -> int:
        """The address of what RMM's class declares: behind the head of the object and the table
        of its methods. The caller keeps the object alive."""
        return id(mr) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)

    @staticmethod
    def adopt(made: Any, address: Any) -> None:
        """Give a fresh Python resource the C resource, with the reference."""
        _core.share(made, address)
        library = ctypes.CDLL(_core.library_path())
        library.rmm_resource_release.argtypes = [ctypes.c_void_p]
        library.rmm_resource_release.restype = None
        library.rmm_resource_release(address)


_DOC = "A resource of rmm_c, ``resource``, as one of RMM: what rmm_c.rapids.as_rmm() makes."


def _repr(self: Any) -> str:
    return f"<rmm_c {self.resource.kind} resource {self.resource.name!r} for RMM>"


def _declared(library: Any) -> Any:
    pointer = ctypes.c_void_p
    library.rmm_c_rapids_message.restype = ctypes.c_char_p
    library.rmm_c_rapids_slot_bytes.restype = ctypes.c_size_t
    library.rmm_c_rapids_check.argtypes = [pointer]
    library.rmm_c_rapids_begin.argtypes = [pointer]
    library.rmm_c_rapids_begin.restype = None
    library.rmm_c_rapids_fill.argtypes = [pointer, pointer, ctypes.c_int, pointer]
    library.rmm_c_rapids_end.argtypes = [pointer]
    library.rmm_c_rapids_end.restype = None
    library.rmm_c_rapids_left_count.restype = ctypes.c_size_t
    library.rmm_c_rapids_hand_over.argtypes = [pointer]
    library.rmm_c_rapids_hand_over.restype = None
    library.rmm_c_rapids_import.argtypes = [pointer, pointer, ctypes.c_char_p, pointer]
    return library


def _check_layout(found: Bridge) -> bool:
    """Is the class of RMM as bridge.cpp declares it? As Cython does, by its size; and by an object
    of a known kind."""
    head = object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)
    if found.base.__basicsize__ != head + found.library.rmm_c_rapids_slot_bytes():
        return False
    known = found.rmm.mr.CudaMemoryResource()
    return bool(found.library.rmm_c_rapids_check(found.slot_of(known)))


def _load() -> Bridge:
    path = build()
    rmm = import_rmm()
    try:
        library = _declared(ctypes.CDLL(str(path)))
    except OSError as error:
        raise RapidsError(f"the bridge to RMM cannot be loaded: {error}") from error
    found = Bridge(rmm, library)
    if not _check_layout(found):
        raise RapidsError(
            f"RMM {rmm.__version__} is not supported by rmm_c.rapids: its class "
            f"DeviceMemoryResource has another layout"
        )
    library.rmm_c_rapids_begin(_core.raise_function())
    return found


_found: Optional[Bridge] = None
_finding = threading.Lock()


def bridge() -> Bridge:
    """The module, loaded at the first use."""
    global _found
    if _found is None:
        with _finding:
            if _found is None:
                _found = _load()
    return _found
