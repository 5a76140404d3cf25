# SPDX-License-Identifier: Apache-2.0
"""
Names that RMM's package had once, and where they are here.

None of them warns, even where RMM did before it gave a name up: here they stay, and programs that
make errors of warnings run as they did. What the allocators are for (CuPy, Numba, PyTorch) loads
at the first use of such a name.
"""
import importlib
from types import ModuleType
from typing import Any, Tuple

_MODULES = ("_cuda", "_lib", "_version", "allocators", "librmm")
_IN_ALLOCATORS = {
    "RMMNumbaManager": "numba",
    "_numba_memory_manager": "numba",
    "device_array": "_numba_arrays",
    "device_array_from_ptr": "_numba_arrays",
    "device_array_like": "_numba_arrays",
    "rmm_cupy_allocator": "cupy",
    "rmm_torch_allocator": "torch",
}


def module_of(package: str, name: str, modules: Tuple[str, ...]) -> ModuleType:
    """What the __getattr__() of a package does whose modules load at their first use."""
    if name not in modules:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return importlib.import_module(f"{package}.{name}")


def of_rmm_module(module: str, name: str) -> Any:
    """What RMM had in ``rmm.rmm`` and at the top."""
    if name not in _IN_ALLOCATORS:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"rmm_c.allocators.{_IN_ALLOCATORS[name]}"), name)


def of_package(name: str) -> Any:
    """A name of the package itself that is not there yet."""
    if name in _MODULES:
        return module_of("rmm_c", name, _MODULES)
    return of_rmm_module("rmm_c", name)
