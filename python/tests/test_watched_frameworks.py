# SPDX-License-Identifier: Apache-2.0
"""
The memory of frameworks with allocators of their own, under /rmm, with stand-ins for the functions
of the frameworks that are asked.
"""
import sys
import types
import warnings

import pytest

import rmm_c as rmm
from rmm_c import frameworks

MIB = 1 << 20
space = types.SimpleNamespace


class Torch(types.ModuleType):
    """What a program sees of torch.cuda, for as many devices as there are rows of figures."""

    def __init__(self, *held, backend="native", is_initialized=True):
        super().__init__("torch")
        self.held = list(held)
        self.asked = 0
        self.cuda = space(
            is_initialized=lambda: is_initialized,
            get_allocator_backend=lambda: backend,
            device_count=lambda: len(self.held),
            memory_stats_as_nested_dict=self.stats,
        )

    def stats(self, device):
        self.asked += 1
        used, reserved = self.held[device]
        figure = {"current": used, "peak": used + MIB, "allocated": used + 2 * MIB, "freed": 0}
        count = {"current": 3, "peak": 4, "allocated": 5, "freed": 2}
        return {
            "allocated_bytes": {"all": figure},
            "allocation": {"all": count},
            "reserved_bytes": {"all": {"current": reserved}},
            "segment": {"all": {"allocated": 2}},
            "num_ooms": 1,
        }


@pytest.fixture
def install(monkeypatch):
    """Installs stand-ins as modules."""

    def put(**modules):
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)

    for name in ("torch", "cupy", "jax", "jax._src.xla_bridge"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return put


@pytest.fixture
def watcher():
    return frameworks._Watcher(1000.0)


def shown():
    """{(device, name): resource} of the observed pools of this process."""
    return {
        (device.name, resource.name.partition(".")[2] or resource.name): resource
        for device in rmm.open_tree().process().devices
        for resource in device.resources
        if resource.type == "observed"
    }


def test_nothing_is_imported_and_nothing_shown(install, watcher):
    watcher.look()
    assert not any(name in sys.modules for name in ("torch", "cupy", "jax"))
    assert watcher._pools == {}


def test_torch_is_shown_on_each_device_that_it_uses(install, watcher):
    torch = Torch((3 * MIB, 8 * MIB), (0, 0))
    install(torch=torch)
    watcher.look()
    assert list(shown()) == [("gpu0", "torch")]
    pool = shown()["gpu0", "torch"]
    assert (pool.current_bytes, pool.reserved_bytes) == (3 * MIB, 8 * MIB)
    assert (pool.peak_bytes, pool.total_bytes) == (4 * MIB, 5 * MIB)
    assert (pool.total_count, pool.freed_count, pool.peak_count) == (5, 2, 4)
    assert (pool.growth_count, pool.oom_count) == (2, 1)
    torch.held[:] = [(0, 8 * MIB), (MIB, 2 * MIB)]
    watcher.look()
    assert shown()["gpu0", "torch"].current_bytes == 0
    assert shown()["gpu1", "torch"].current_bytes == MIB


@pytest.mark.parametrize(
    "torch",
    [
        Torch((MIB, MIB), is_initialized=False),  # also one that was built without CUDA
        Torch((MIB, MIB), backend="pluggable"),  # our allocator: its resource is shown
    ],
)
def test_torch_is_not_asked(install, watcher, torch):
    install(torch=torch)
    watcher.look()
    assert (torch.asked, watcher._pools) == (0, {})


def test_a_module_that_is_being_imported_is_left_alone(install, watcher):
    torch = types.ModuleType("torch")
    torch.__spec__ = space(_initializing=True)
    install(torch=torch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watcher.look()


def test_cupy_is_shown_where_a_context_is(install, watcher, monkeypatch):
    now, used = [0], {0: 5 * MIB, 1: 6 * MIB}
    pool = space(used_bytes=lambda: used[now[0]], total_bytes=lambda: 7 * MIB)
    cupy = types.ModuleType("cupy")
    cupy.get_default_memory_pool = lambda: pool
    cupy.cuda = space(runtime=space(setDevice=lambda device: now.__setitem__(0, device)))
    install(cupy=cupy)
    watcher.look()  # no CUDA in this process
    assert watcher._pools == {}
    monkeypatch.setattr(frameworks, "_devices_in_use", lambda: [1])
    watcher.look()
    assert list(shown()) == [("gpu1", "cupy")]
    assert shown()["gpu1", "cupy"].current_bytes == 6 * MIB
    assert shown()["gpu1", "cupy"].reserved_bytes == 7 * MIB


def test_jax_is_shown_once_it_has_begun(install, watcher):
    stats = {"bytes_in_use": MIB, "peak_bytes_in_use": 2 * MIB, "pool_bytes": 64 * MIB}
    begun = [False]
    devices = [
        space(platform="cpu", memory_stats=None, local_hardware_id=0),
        space(platform="gpu", memory_stats=lambda: stats, local_hardware_id=1),
        space(platform="gpu", memory_stats=lambda: None, local_hardware_id=0),
    ]
    jax, bridge = types.ModuleType("jax"), types.ModuleType("jax._src.xla_bridge")
    jax.local_devices = lambda: devices if begun[0] else pytest.fail("it was made to begin")
    bridge.backends_are_initialized = lambda: begun[0]
    install(jax=jax, **{"jax._src.xla_bridge": bridge})
    watcher.look()
    begun[0] = True
    watcher.look()
    assert list(shown()) == [("gpu1", "jax")]
    pool = shown()["gpu1", "jax"]
    assert (pool.current_bytes, pool.reserved_bytes, pool.peak_bytes) == (MIB, 64 * MIB, 2 * MIB)
    del bridge.backends_are_initialized  # an older one
    bridge._backends = {}
    watcher.look()
    assert shown() == {}


def test_a_framework_that_cannot_be_read_is_named_once(install, watcher):
    torch = Torch((MIB, MIB))
    install(torch=torch)
    watcher.look()
    torch.held[:] = [None]
    with pytest.warns(RuntimeWarning, match="no longer shows torch.*TypeError"):
        watcher.look()
    assert shown() == {}
    asked = torch.asked
    watcher.look()
    assert torch.asked == asked


def test_it_starts_and_stops(install):
    install(torch=Torch((MIB, 2 * MIB)))
    frameworks.start(0.001)
    frameworks.start(0.001)
    while not shown():
        pass
    frameworks.stop()
    frameworks.stop()
    assert shown() == {}


def test_pools_come_and_go_beside_threads(install, threads):
    """Many that other programs' threads set, while the watcher looks."""

    def churn(number):
        for i in range(50):
            pool = frameworks.ObservedPool(f"pool{number}", number % 2)
            pool.set(current_bytes=i * MIB, reserved_bytes=i * MIB)
            pool.close()

    install(torch=Torch((MIB, 2 * MIB), (MIB, 2 * MIB)))
    before = {device.name: device.current_bytes for device in rmm.open_tree().process().devices}
    frameworks.start(0.0001)
    with threads(churn, range(4)):
        pass
    frameworks.stop()
    after = {device.name: device.current_bytes for device in rmm.open_tree().process().devices}
    assert {**after, **before} == after and shown() == {}


def test_what_is_wrong_is_refused():
    pool = frameworks.ObservedPool("mine", 0)
    with pytest.raises(TypeError, match="'nonsense' is no figure"):
        pool.set(nonsense=1)
    with pytest.raises(OverflowError):
        pool.set(current_bytes=-1)
    with pytest.raises(rmm.RMMError):
        frameworks.ObservedPool("mine", 7)
