# SPDX-License-Identifier: Apache-2.0
"""
What all resources have, and the way from a C resource back to its Python object.

A C resource that Python made has one Python object, which the registry finds by its address as
long as it lives. One that C or the environment made gets an object of the class of its type when
Python first looks at it.
"""
from dataclasses import dataclass
from typing import Any, Dict, Optional, Type, TypeVar
from weakref import WeakValueDictionary

from rmm_c import _core

T = TypeVar("T", bound="DeviceMemoryResource")

_registry: "WeakValueDictionary[int, DeviceMemoryResource]" = WeakValueDictionary()
_classes: Dict[str, "Type[DeviceMemoryResource]"] = {}


@dataclass
class ResourceStats:
    """The figures of one resource since its creation, as ``/rmm`` shows them.

    A pool can hand out ``free_bytes`` yet, and grow by ``maximum_bytes - reserved_bytes``; it has
    no maximum where ``maximum_bytes`` is 0.
    """

    current_bytes: int
    current_count: int
    peak_bytes: int
    peak_count: int
    total_bytes: int
    total_count: int
    reserved_bytes: int
    oom_count: int
    invalid_free_count: int
    free_bytes: int
    largest_free_bytes: int
    maximum_bytes: int
    asleep_bytes: int


class DeviceMemoryResource(_core.Resource):
    """A resource hands out memory in stream order. This is the base of all of them.

    >>> from rmm_c import mr
    >>> pool = mr.PoolMemoryResource(mr.CudaMemoryResource(), "1MiB")
    >>> address = pool.allocate(1000)
    >>> pool.stats().current_bytes
    1000
    >>> pool.deallocate(address, 1000)
    """

    _kind = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        kind = cls.__dict__.get("_kind")
        if kind:
            _classes.setdefault(kind, cls)

    def _created(self) -> None:
        """Registers the object; each __init__() ends with it."""
        _registry[self.handle] = self

    def stats(self) -> ResourceStats:
        """The figures of this resource."""
        return ResourceStats(**_core.stats(self))

    def get_upstream(self) -> "Optional[DeviceMemoryResource]":
        """The resource that this one allocates from; None for a base resource."""
        upstream: Optional[DeviceMemoryResource] = self.upstream_mr
        return upstream

    @property
    def is_host_accessible(self) -> bool:
        """True if the host can read and write the memory."""
        return bool(self.properties & _core.HOST_ACCESSIBLE)

    @property
    def is_device_accessible(self) -> bool:
        """True if a device can."""
        return bool(self.properties & _core.DEVICE_ACCESSIBLE)


class UpstreamResourceAdaptor(DeviceMemoryResource):
    """The base of resources that allocate from another one."""


def one_upstream(
    upstream_mr: Optional[DeviceMemoryResource], upstream: Optional[DeviceMemoryResource]
) -> DeviceMemoryResource:
    """The one that is given: RMM's parameter was named upstream until 0.18."""
    if upstream_mr is not None and upstream is not None:
        raise TypeError("upstream_mr and upstream are the same parameter: one resource is needed")
    given = upstream if upstream_mr is None else upstream_mr
    if given is None:
        raise TypeError("upstream_mr must be a resource, not None")
    return given


def _of_kind(kind: str) -> DeviceMemoryResource:
    cls = _classes.get(kind, DeviceMemoryResource)
    return cls.__new__(cls)


def wrap_shared(bare: _core.Resource) -> DeviceMemoryResource:
    """The Python object of a C resource that ``bare`` holds."""
    known = _registry.get(bare.handle)
    if known is not None:
        return known
    made = _of_kind(bare.kind)
    _core.share(made, bare)
    made._created()
    return made


def wrap_address(address: int) -> DeviceMemoryResource:
    """The Python object of the C resource at an address; the caller keeps that alive."""
    known = _registry.get(address)
    if known is not None:
        return known
    made = _of_kind(_core.kind_at(address))
    _core.share(made, address)
    made._created()
    return made


def from_spec(spec: str) -> DeviceMemoryResource:
    """Create the resources that a text names, as ``RMM_RESOURCE`` does.

    >>> resource = from_spec("statistics+pool:1MiB")
    >>> type(resource).__name__, type(resource.get_upstream()).__name__
    ('StatisticsResourceAdaptor', 'PoolMemoryResource')
    """
    bare = _core.Resource()
    _core.create_from_spec(bare, spec)
    return wrap_shared(bare)


def check_spec(spec: str) -> None:
    """Raise InvalidArgumentError with the reason if the text is malformed. Creates nothing."""
    _core.check_spec(spec)
