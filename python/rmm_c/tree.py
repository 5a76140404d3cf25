# SPDX-License-Identifier: Apache-2.0
"""
The figures of all processes that use librmm-c, as Python objects.

They come from the tree of rmmfs where it is mounted, else straight from the processes' segments,
which needs no daemon. Only the daemon knows the peaks of a device of the whole node: they are None
then, and processes that ended more than a minute ago may be missing.
"""
import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Union

from rmm_c import _segments

Figures = Dict[str, Optional[int]]
Path = Union[str, "os.PathLike[str]"]


class _HasFigures:
    figures: Figures

    def __getattr__(self, name: str) -> Optional[int]:
        try:
            figures: Figures = self.__dict__["figures"]
            return figures[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no figure {name!r}") from None

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *self.figures})


@dataclass
class Resource(_HasFigures):
    """A resource of a process on a device. Its figures are attributes: current_bytes, ..."""

    name: str
    type: str
    figures: Figures = field(repr=False)


@dataclass
class Device(_HasFigures):
    """A device ("gpu0", "host"), of a process or of the whole node."""

    name: str
    figures: Figures = field(repr=False)
    resources: List[Resource] = field(default_factory=list)


@dataclass
class Process:
    """A process that has used the library."""

    pid: int
    state: str
    uid: int
    comm: str
    devices: List[Device]

    @property
    def is_live(self) -> bool:
        """False: it has ended, and its figures are the last ones."""
        return self.state == "live"


@dataclass
class Tree:
    """One reading of all figures."""

    source: str
    devices: List[Device]
    processes: List[Process]

    def device(self, name: Union[str, int]) -> Device:
        """A device of the node by its name or its number."""
        wanted = f"gpu{name}" if isinstance(name, int) else name
        for device in self.devices:
            if device.name == wanted:
                return device
        raise KeyError(wanted)

    def process(self, pid: Optional[int] = None) -> Process:
        """A process by its number; by default this one."""
        wanted = os.getpid() if pid is None else pid
        for process in self.processes:
            if process.pid == wanted:
                return process
        raise KeyError(wanted)

    def rows(self) -> Iterator[Dict[str, Any]]:
        """A flat row for each resource: pid, comm, state, device, resource, type, figures."""
        for process in self.processes:
            for device in process.devices:
                for resource in device.resources:
                    row: Dict[str, Any] = {
                        "pid": process.pid,
                        "comm": process.comm,
                        "state": process.state,
                        "device": device.name,
                        "resource": resource.name,
                        "type": resource.type,
                    }
                    row.update(resource.figures)
                    yield row

    def frame(self) -> Any:
        """rows() as a pandas DataFrame; needs pandas."""
        import pandas

        return pandas.DataFrame(list(self.rows()))


def open_tree(path: Optional[Path] = None) -> Tree:
    """Read the figures of all processes.

    ``path`` is a mount of rmmfs or a folder of segments. By default the mount is /rmm, or ~/rmm of
    a user; without one, the folder of this process's own segment and /run/rmm are read.

    >>> import rmm_c
    >>> buffer = rmm_c.DeviceBuffer(size=1000)
    >>> tree = rmm_c.open_tree()
    >>> tree.process().devices[0].current_bytes >= 1000
    True
    """
    if path is not None:
        given = os.fspath(path)
        return _from_mount(given) if _is_mount(given) else _from_segments(given)
    if "RMM_RUNTIME_DIR" not in os.environ:
        for mount in ("/rmm", os.path.expanduser("~/rmm")):
            if _is_mount(mount):
                return _from_mount(mount)
    return _from_segments()


def _is_mount(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "json")) and os.path.isdir(os.path.join(path, "proc"))


def _from_mount(path: str) -> Tree:
    with open(os.path.join(path, "json"), encoding="utf-8") as file:
        return _tree(path, json.load(file))


def _from_segments(*folder: str) -> Tree:
    found = _segments.read_node(*folder)
    tree = _tree(os.pathsep.join(filter(os.path.isdir, found["folders"])), found)
    tree.processes.sort(key=lambda process: (not process.is_live, process.pid))
    return tree


def _tree(source: str, found: Dict[str, Any]) -> Tree:
    devices = [_device(each) for each in found["devices"]]
    return Tree(source, devices, [_process(each) for each in found["processes"]])


def _process(found: Dict[str, Any]) -> Process:
    number = str(found["pid"]).split(".")[0]
    devices = [_device(each) for each in found["devices"]]
    return Process(int(number), found["state"], found["uid"], found["comm"], devices)


def _device(found: Dict[str, Any]) -> Device:
    resources = [
        Resource(each["resource"], each["type"], _figures(each))
        for each in found.get("resources", [])
    ]
    return Device(found["device"], _figures(found), resources)


def _figures(found: Dict[str, Any]) -> Figures:
    """The numbers; None is a figure that is not known."""
    return {
        name: value for name, value in found.items() if value is None or isinstance(value, int)
    }
