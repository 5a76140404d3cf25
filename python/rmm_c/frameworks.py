# SPDX-License-Identifier: Apache-2.0
"""
Shows the memory of other allocators under /rmm: those of PyTorch, CuPy and JAX, unchanged.

::

    import rmm_c.frameworks

    rmm_c.frameworks.start()

or, without a change of the program, ``python3 -m rmm_c.frameworks train.py ARGUMENTS`` (also
``-m MODULE``). A thread then asks each framework that the program has imported, ten times a
second, how much its caching allocator has given out (``current_bytes``) and holds from the driver
(``reserved_bytes``), with the peak that the framework keeps. It imports none, and asks none that
has not begun to use the GPU: it neither initialises CUDA nor makes a context.

PyTorch with rmm_torch_allocator, and CuPy with rmm_cupy_allocator, are shown by the resources that
they allocate from, and not once more.
"""
import atexit
import builtins
import ctypes
import io
import os
import pkgutil
import runpy
import sys
import threading
import types
import warnings
from typing import Any, Callable, Dict, List, Optional, Tuple

from rmm_c import _core

__all__ = ["ObservedPool", "start", "stop"]

Figures = Dict[str, int]


class ObservedPool:
    """
    An allocator of somebody else, with figures that its owner sets: for frameworks that this
    module does not know.

    >>> pool = ObservedPool("mine", 0)
    >>> pool.set(current_bytes=1000, reserved_bytes=4096)
    >>> pool.close()
    """

    def __init__(self, name: str, device: int) -> None:
        self._pool = _core.observed_create(name, device)

    def set(self, **figures: int) -> None:
        """Set the figures; the fields of rmm_observed_pool_figures_t, 0 if they are not given."""
        _core.observed_set(self._pool, **figures)

    def close(self) -> None:
        """Show it no longer."""
        self._pool = None


# --- what the frameworks say ----------------------------------------------------------------


def _module(name: str) -> Any:
    """A module that the program has imported, and whose import is over."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return None if getattr(spec, "_initializing", False) else module


def _of_torch() -> Dict[int, Figures]:
    torch = _module("torch")
    if torch is None or not torch.cuda.is_initialized():
        return {}
    if torch.cuda.get_allocator_backend() == "pluggable":  # it has no figures of its own
        return {}
    found = {}
    for device in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats_as_nested_dict(device)
        used, count = stats["allocated_bytes"]["all"], stats["allocation"]["all"]
        found[device] = {
            "current_bytes": used["current"],
            "peak_bytes": used["peak"],
            "total_bytes": used["allocated"],
            "current_count": count["current"],
            "peak_count": count["peak"],
            "total_count": count["allocated"],
            "reserved_bytes": stats["reserved_bytes"]["all"]["current"],
            "growth_count": stats["segment"]["all"]["allocated"],
            "oom_count": stats["num_ooms"],
        }
    return found


def _devices_in_use() -> List[int]:
    """Those whose primary context is there. Changes nothing, in a program without CUDA either."""
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return []  # no CUDA in this process
    count, flags, active, found = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int(), []
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []  # not initialised
    for device in range(count.value):
        handle = ctypes.c_int()
        if (
            driver.cuDeviceGet(ctypes.byref(handle), device) == 0
            and driver.cuDevicePrimaryCtxGetState(
                handle, ctypes.byref(flags), ctypes.byref(active)
            )
            == 0
            and active.value
        ):
            found.append(device)
    return found


def _of_cupy() -> Dict[int, Figures]:
    cupy = _module("cupy")
    if cupy is None:
        return {}
    pool, found = cupy.get_default_memory_pool(), {}
    for device in _devices_in_use():
        cupy.cuda.runtime.setDevice(device)  # for this thread: the pool answers for that device
        used = pool.used_bytes()
        found[device] = {
            "current_bytes": used,
            "reserved_bytes": max(used, pool.total_bytes()),
        }
    return found


def _jax_has_begun(bridge: Any) -> bool:
    if hasattr(bridge, "backends_are_initialized"):
        return bool(bridge.backends_are_initialized())
    return bool(getattr(bridge, "_backends", None))


def _of_jax() -> Dict[int, Figures]:
    jax, bridge = _module("jax"), _module("jax._src.xla_bridge")
    if jax is None or bridge is None or not _jax_has_begun(bridge):
        return {}
    found = {}
    for device in jax.local_devices():
        stats = device.memory_stats() if device.platform in ("gpu", "cuda") else None
        if stats:  # None: it has no pool, but allocates each block from the driver
            used = stats["bytes_in_use"]
            found[device.local_hardware_id] = {
                "current_bytes": used,
                "peak_bytes": stats.get("peak_bytes_in_use", 0),
                "reserved_bytes": max(used, stats.get("pool_bytes", 0)),
            }
    return found


_READERS: Dict[str, Callable[[], Dict[int, Figures]]] = {
    "torch": _of_torch,
    "cupy": _of_cupy,
    "jax": _of_jax,
}

# --- the thread -----------------------------------------------------------------------------


class _Watcher(threading.Thread):
    """Sets the figures of all frameworks until it is stopped."""

    PATIENCE_S = 10.0

    def __init__(self, interval_s: float) -> None:
        super().__init__(name="rmm-frameworks", daemon=True)
        self._interval_s = interval_s
        self._over = threading.Event()
        self._pools: Dict[Tuple[str, int], ObservedPool] = {}
        self._refused: List[str] = []

    def run(self) -> None:
        """Until end(); once more then, for the last peak."""
        while not self._over.wait(self._interval_s):
            self.look()
        self.look()

    def end(self) -> None:
        """A framework may keep the thread waiting, so the program's end does not depend on it."""
        self._over.set()
        self.join(timeout=self.PATIENCE_S)

    def look(self) -> None:
        """Once."""
        for framework, read in _READERS.items():
            if framework in self._refused:
                continue
            try:
                self._show(framework, read())
            except Exception as error:
                self._refused.append(framework)
                self._show(framework, {})
                warnings.warn(
                    f"rmm_c.frameworks: /rmm no longer shows {framework}, whose allocator cannot "
                    f"be read: {type(error).__name__}: {error}",
                    RuntimeWarning,
                )

    def _show(self, framework: str, figures: Dict[int, Figures]) -> None:
        for key in [key for key in self._pools if key[0] == framework and key[1] not in figures]:
            self._pools.pop(key).close()
        for device, numbers in figures.items():
            pool = self._pools.get((framework, device))
            if pool is None and numbers["reserved_bytes"] != 0:
                pool = self._pools[framework, device] = ObservedPool(framework, device)
            if pool is not None:
                pool.set(**numbers)


_watcher: Optional[_Watcher] = None
_lock = threading.Lock()


def start(interval_s: float = 0.1) -> None:
    """
    Show the memory of the frameworks from now on, and look every interval_s seconds. It may be
    called before they are imported. A forked child shows nothing until it calls this itself.
    """
    global _watcher
    with _lock:
        if _watcher is None:
            _watcher = _Watcher(interval_s)
            _watcher.start()


def stop() -> None:
    """Show it no longer."""
    global _watcher
    with _lock:
        watcher, _watcher = _watcher, None
    if watcher is not None:
        watcher.end()


def _forget_in_child() -> None:
    global _watcher, _lock
    _watcher, _lock = None, threading.Lock()


atexit.register(stop)
os.register_at_fork(after_in_child=_forget_in_child)

# --- python3 -m rmm_c.frameworks ------------------------------------------------------------

_globals: Dict[str, Any] = {}  # of a module, or folder, that was run: as long as the process


def _run_file(path: str) -> None:
    """As Python runs a program: its module stays __main__ until the end of the process."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins)
    sys.modules["__main__"] = main
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec")
    exec(code, main.__dict__)


def _main(arguments: List[str]) -> None:
    global _globals
    is_module = arguments[:1] == ["-m"]
    program = arguments[1:] if is_module else arguments
    if not program or program[0].startswith("-"):
        raise SystemExit("usage: python3 -m rmm_c.frameworks PROGRAM.py | -m MODULE [ARGUMENT ...]")
    start()
    sys.argv = program
    if is_module:
        _globals = runpy.run_module(program[0], run_name="__main__", alter_sys=True)
        return
    sys.path[0] = os.path.dirname(os.path.realpath(program[0]))
    if pkgutil.get_importer(program[0]) is not None:  # a folder, or an archive
        _globals = runpy.run_path(program[0], run_name="__main__")
    else:
        _run_file(program[0])


if __name__ == "__main__":
    from rmm_c import frameworks

    frameworks._main(sys.argv[1:])
