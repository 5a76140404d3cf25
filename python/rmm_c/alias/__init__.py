# SPDX-License-Identifier: Apache-2.0
"""
``import rmm`` imports this package, for programs that cannot be changed.

It has to be asked for: by the folder that ``python -m rmm_c.alias`` prints, in PYTHONPATH; by the
distribution rmm-c-as-rmm, which has the same file; or by as_rmm() in the program itself. All
modules of ``rmm`` are then those of ``rmm_c``. Only ``rmm`` itself is a module of its own, because
programs compare its ``__version__`` with RMM's.
"""
import importlib
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import warnings
from types import ModuleType
from typing import Any, Optional, Sequence

__all__ = ["as_rmm", "is_active"]


class _Finder:
    """Finds ``rmm.x`` as ``rmm_c.x``, by the protocols of a finder and of a loader."""

    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Any = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """The protocol of importlib."""
        if not name.startswith("rmm."):
            return None
        own = importlib.util.find_spec(_own_name(name))
        if own is None:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin=own.origin)  # type: ignore
        spec.submodule_search_locations = own.submodule_search_locations
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The protocol of importlib."""
        module = importlib.import_module(_own_name(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already; importlib has given it the other name's spec."""
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


def _own_name(name: str) -> str:
    return "rmm_c" + name[len("rmm") :]


def _check_alone(folder: str) -> None:
    """The file of this alias and those of RMM would be of one package."""
    if any((pathlib.Path(folder) / name).is_dir() for name in ("pylibrmm", "_lib")):
        raise ImportError(
            f"RMM and rmm-c-as-rmm are both installed in {folder}: uninstall both, and install "
            "the one that is meant"
        )


def _warn_of_another(folder: Optional[str]) -> None:
    """Packages that were built for an RMM that is installed as well do not run over this one."""
    own = os.path.realpath(folder) if folder else None
    others = [path for path in sys.path if os.path.realpath(os.path.join(path, "rmm")) != own]
    other = importlib.machinery.PathFinder.find_spec("rmm", others)
    if other is not None and other.origin is not None:
        warnings.warn(
            f"rmm is rmm_c here, and not RMM in {os.path.dirname(other.origin)}, which packages "
            "built for RMM need (cuDF)",
            RuntimeWarning,
            stacklevel=4,
        )


def become_rmm(module: ModuleType, folder: Optional[str] = None) -> None:
    """Make a fresh module named ``rmm``, of a folder or of none, what programs expect of it."""
    import rmm_c
    from rmm_c import _version

    if folder is not None:
        _check_alone(folder)
    _warn_of_another(folder)
    module.__dict__.update(
        __doc__=rmm_c.__doc__,
        __all__=rmm_c.__all__,
        __path__=list(rmm_c.__path__),  # but _Finder comes first
        __version__=_version.__version__,
        __git_commit__=_version.__git_commit__,
        get_versions=_version.get_versions,
        __getattr__=lambda name: getattr(rmm_c, name),
        __dir__=lambda: sorted({*dir(rmm_c), *vars(module)}),
    )
    if not is_active():
        sys.meta_path.insert(0, _Finder())


def is_active() -> bool:
    """True if ``rmm`` is this package in this process."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


def as_rmm() -> None:
    """Make ``import rmm`` import this package in this process.

    >>> import subprocess, sys
    >>> program = "import rmm_c; rmm_c.as_rmm(); import rmm.mr; print(rmm.mr.__name__)"
    >>> subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE).stdout
    b'rmm_c.mr\\n'
    """
    present = sys.modules.get("rmm")
    if present is None:
        spec = importlib.machinery.ModuleSpec("rmm", None, is_package=True)
        made = importlib.util.module_from_spec(spec)
        become_rmm(made)
        sys.modules["rmm"] = made
    elif not is_active():
        raise ImportError(f"rmm is imported already, from {present.__file__}")
