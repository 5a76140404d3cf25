# SPDX-License-Identifier: Apache-2.0
"""
Finds librmm-c and loads the extension module over it.

A wheel carries its library beside the extension module. The variable RMM_C_LIBRARY names another
one, which then is loaded first; a library of the same ABI name that is in the process already is
the one that the extension module uses, unless it is older than what the module was built for.
"""
import ctypes
import importlib
import os
from types import ModuleType

VARIABLE = "RMM_C_LIBRARY"


def _load_named(path: str) -> None:
    try:
        ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    except OSError as error:
        raise ImportError(f"{VARIABLE} names {path}, which cannot be loaded: {error}") from error


def _check_used(core: ModuleType, path: str) -> None:
    used = core.library_path()
    if not os.path.samefile(used, path):
        raise ImportError(
            f"{VARIABLE} names {path}, but {used} is loaded: it was loaded before, or its ABI "
            f"name is not the one that this package was built for"
        )


def _loaded() -> str:
    """The file of librmm-c in this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = [line.split(maxsplit=5)[-1].strip() for line in maps]
    return next((path for path in paths if "/librmm-c.so" in path), "librmm-c")


def _older(reason: str) -> ImportError:
    return ImportError(
        f"{_loaded()} is older than this rmm_c needs ({reason}). The process had loaded it "
        f"before, or the loader found it first: update it, or import rmm_c before what loads it"
    )


def load_core() -> ModuleType:
    """Load the extension module, and the library that RMM_C_LIBRARY names if it is set."""
    named = os.environ.get(VARIABLE)
    if named:
        _load_named(named)
    try:
        core = importlib.import_module("rmm_c._core")
    except ImportError as error:
        if "undefined symbol: rmm_" in str(error):
            raise _older(str(error)) from error
        if "librmm-c" not in str(error):
            raise
        raise ImportError(
            f"librmm-c was not found ({error}). Install it where the loader searches "
            f"(ldconfig, LD_LIBRARY_PATH), or set {VARIABLE} to its file"
        ) from error
    if named:
        _check_used(core, named)
    if core.is_built_for_newer():
        raise _older(f"its version is {core.version()}")
    return core
