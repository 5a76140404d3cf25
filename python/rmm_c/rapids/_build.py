# SPDX-License-Identifier: Apache-2.0
"""
Finds the installed RMM, and compiles bridge.cpp against it once.

The cache: one file for each RMM, its path, each library and version of this package, and each
compiler, in ``RMM_C_CACHE``, by default ``~/.cache/rmm-c``. The folder is the user's alone. A
module is compiled under another name and then renamed, so several processes may do it at once.
It does not depend on the version of Python.
"""
import hashlib
import importlib
import importlib.util
import os
import pathlib
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from types import ModuleType
from typing import List, Optional, Tuple

from rmm_c import _core

_HERE = pathlib.Path(__file__).resolve().parent
_OLDEST = (25, 6)


class RapidsError(ImportError):
    """The bridge to RMM cannot be built or loaded; one line says why."""


# --- what is installed ----------------------------------------------------------------------


def import_rmm() -> ModuleType:
    try:
        rmm = importlib.import_module("rmm")
    except ImportError as error:
        raise RapidsError(
            f"RAPIDS RMM cannot be imported ({error}): install it, for example "
            f"pip install rmm-cu13"
        ) from error
    if rmm.__name__ != "rmm" or not hasattr(rmm.mr.DeviceMemoryResource, "__pyx_vtable__"):
        raise RapidsError("the package rmm in this process is rmm_c, not RAPIDS RMM")
    return rmm


def _version_of(rmm: ModuleType) -> Tuple[int, int]:
    major, minor = rmm.__version__.split(".")[:2]
    version = int(major), int(minor)
    if version < _OLDEST:
        raise RapidsError(
            f"RMM {rmm.__version__} is too old for rmm_c.rapids: {_OLDEST[0]}.{_OLDEST[1]} is the "
            f"oldest"
        )
    return version


def _folder_of(package: str) -> Optional[pathlib.Path]:
    """Of an installed package, or None."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return pathlib.Path(next(iter(spec.submodule_search_locations)))


def _prefixes() -> List[pathlib.Path]:
    """Where librmm's include/ and lib/ may be: wheels, then an environment of conda, then the
    system."""
    found = [folder for folder in [_folder_of("librmm")] if folder is not None]
    named = os.environ.get("CONDA_PREFIX")
    found += [pathlib.Path(name) for name in [named, sys.prefix, "/usr/local", "/usr"] if name]
    return found


def _rmm_folders() -> Tuple[pathlib.Path, pathlib.Path]:
    """The include folder of RMM and the file of its library."""
    for prefix in _prefixes():
        include = prefix / "include"
        if not (include / "rmm" / "version_config.hpp").exists():
            continue
        for folder in ("lib64", "lib"):
            library = prefix / folder / "librmm.so"
            if library.exists():
                return include, library
    raise RapidsError(
        "the headers and the library of RMM were not found: install librmm, for example "
        "pip install librmm-cu13"
    )


def _header_version(include: pathlib.Path) -> str:
    text = (include / "rmm" / "version_config.hpp").read_text().split()
    return ".".join(text[text.index(f"RMM_VERSION_{part}") + 1] for part in ("MAJOR", "MINOR"))


def _cuda_include() -> pathlib.Path:
    """The folder of CUDA's headers: of what the user names, of wheels, of a toolkit."""
    named = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX")]
    candidates = [pathlib.Path(name) for name in named if name]
    nvidia = _folder_of("nvidia")
    if nvidia is not None:
        candidates += sorted(nvidia.glob("cu[0-9]*"), reverse=True) + [nvidia / "cuda_runtime"]
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        candidates.append(pathlib.Path(nvcc).resolve().parent.parent)
    candidates.append(pathlib.Path("/usr/local/cuda"))
    for root in candidates:
        for folder in (root / "include", *sorted(root.glob("targets/*/include"))):
            if (folder / "cuda_runtime_api.h").exists() and (folder / "crt").exists():
                return folder
    raise RapidsError(
        "CUDA's headers were not found (cuda_runtime_api.h): set CUDA_HOME to a toolkit, or pip "
        "install nvidia-cuda-runtime nvidia-cuda-crt"
    )


def _includes(include: pathlib.Path) -> List[pathlib.Path]:
    """RMM's folders in the order that it needs; CCCL is below include/rapids."""
    rapids = include / "rapids"
    folders = [rapids / name for name in ("libcudacxx", "")] + [include]
    logger = _folder_of("rapids_logger")
    if logger is not None:
        folders.append(logger / "include")
    return [folder for folder in folders if folder.exists()] + [_cuda_include()]


def _own_include() -> pathlib.Path:
    """Of this library: in the package, or in a source tree."""
    named = os.environ.get("RMM_C_INCLUDE")
    candidates = [pathlib.Path(named)] if named else []
    candidates.append(_HERE.parent / "include")
    for folder in candidates:
        if (folder / "rmm" / "cxx" / "rapids.hpp").exists():
            return folder
    raise RapidsError(f"the headers of rmm-c are not in {candidates[0]}: set RMM_C_INCLUDE")


def _compiler() -> List[str]:
    command = shlex.split(os.environ.get("CXX", "")) or ["c++"]
    if shutil.which(command[0]) is None:
        raise RapidsError(
            f"there is no C++ compiler ({command[0]}): install g++, or set CXX to a compiler"
        )
    return command


# --- the cache ------------------------------------------------------------------------------


def _cache() -> pathlib.Path:
    named = os.environ.get("RMM_C_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = pathlib.Path(named) if named else pathlib.Path(base) / "rmm-c"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise RapidsError(f"the cache {folder} cannot be made: {error}; set RMM_C_CACHE") from error
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise RapidsError(
            f"the cache {folder} can be written by others: set RMM_C_CACHE to a folder of your own"
        )
    return folder


def _command(source: pathlib.Path, include: pathlib.Path, library: pathlib.Path) -> List[str]:
    command = _compiler() + ["-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-shared"]
    command += ["-fvisibility=hidden", "-w", f"-I{_own_include()}"]
    for folder in _includes(include):
        command += ["-isystem", str(folder)]
    # the loader finds both by their names: they are loaded already
    return command + [str(source), _core.library_path(), str(library)]


def _key(command: List[str], inputs: List[pathlib.Path]) -> str:
    """What the module depends on: the command, and the state of what it reads."""
    digest = hashlib.sha256("\0".join(command).encode())
    for path in inputs:
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:32]


def _first_error(output: str) -> str:
    lines = [line for line in output.splitlines() if "error" in line] or output.splitlines()
    return lines[0].strip() if lines else "no output"


def _compile(command: List[str], target: pathlib.Path) -> None:
    handle, made = tempfile.mkstemp(dir=target.parent, prefix=".build-", suffix=".so")
    os.close(handle)
    try:
        done = subprocess.run(
            command + ["-o", made], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode != 0:
            raise RapidsError(
                f"the bridge to RMM does not compile: {_first_error(done.stdout)} (the command: "
                f"{shlex.join(command)})"
            )
        os.chmod(made, 0o700)
        os.replace(made, target)
    finally:
        if os.path.exists(made):
            os.unlink(made)


def build() -> pathlib.Path:
    """Compile the bridge against the installed RMM, unless the cache has it; its path."""
    rmm = import_rmm()
    version = _version_of(rmm)
    include, library = _rmm_folders()
    found = _header_version(include)
    if tuple(int(part) for part in found.split(".")) != version:
        raise RapidsError(
            f"the headers in {include} are of RMM {found}, but the package rmm is {rmm.__version__}"
        )
    source = _HERE / "bridge.cpp"
    command = _command(source, include, library)
    inputs = [source, pathlib.Path(_core.library_path()), library]
    inputs += sorted((_own_include() / "rmm").rglob("*.h*"))
    target = _cache() / f"rapids-{found}-{_key(command, inputs)}.so"
    if not target.exists():
        _compile(command, target)
    return target
