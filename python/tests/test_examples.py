# SPDX-License-Identifier: Apache-2.0
"""
The programs of examples/ that need a GPU, with a stand-in for their package: they use what rmm_c
has, and the stand-in is given its allocator before it allocates. tests/gpu runs them with the
packages themselves.
"""
import ast
import ctypes
import pathlib
import runpy
import sys
from unittest import mock

import pytest

import rmm_c

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def package(monkeypatch):
    """Installs a mock as a package, and forgets the allocators' modules afterwards."""

    def put(name):
        made = mock.MagicMock(name=name)
        for part in (name, f"{name}.cuda", f"{name}.cuda.memory"):
            monkeypatch.setitem(sys.modules, part, made)
        made.cuda, made.memory = made, made
        return made

    yield put
    for name in list(sys.modules):
        if name.startswith("rmm_c.allocators."):
            del sys.modules[name]


def calls_of(made):
    return [name for name, _, _ in made.mock_calls]


def test_all_python_examples_are_tried_here():
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"pytorch.py", "pytorch_sleep.py", "cupy_arrays.py"}
    for name in names:
        ast.parse((EXAMPLES / name).read_text(encoding="utf-8"), feature_version=(3, 9))


def test_pytorch_gets_the_allocator_before_it_allocates(package, capsys):
    torch = package("torch")
    torch.nn.Linear.side_effect = lambda *a, **k: mock.MagicMock()
    with mock.patch.object(ctypes, "cast"):
        runpy.run_path(str(EXAMPLES / "pytorch.py"))
    calls = calls_of(torch)
    changed = [i for i, name in enumerate(calls) if name.endswith("change_current_allocator")]
    assert len(changed) == 1 and changed[0] < calls.index("nn.Linear")
    assert "held from the driver" in capsys.readouterr().out


def test_a_pytorch_model_sleeps_while_another_program_runs(package, capsys):
    torch = package("torch")
    torch.cuda.mem_get_info.return_value = (1 << 30, 1 << 30)
    torch.nn.Linear.side_effect = lambda *a, **k: mock.MagicMock()
    del torch.empty.return_value.untyped_storage
    del torch.empty.return_value.__cuda_array_interface__
    default = rmm_c.mr.get_current_device_resource()
    pools = []

    def empty(*args, **kwargs):
        pools.append(rmm_c.mr.get_current_device_resource())
        return pools[0].allocate(1000)

    torch.empty.side_effect = empty
    with mock.patch.object(ctypes, "cast"), mock.patch("subprocess.run") as run:
        run.side_effect = lambda *a, **k: pools.append(pools[0].state)
        runpy.run_path(str(EXAMPLES / "pytorch_sleep.py"), run_name="__main__")
    rmm_c.mr.set_current_device_resource(default)
    assert pools[1] == "asleep" and pools[0].state == "awake"
    assert "the model says the same" in capsys.readouterr().out


def test_cupy_gets_the_allocator_before_it_allocates(package, capsys):
    from rmm_c.allocators.cupy import rmm_cupy_allocator

    cupy = package("cupy")
    cupy.arange.return_value.__mul__.return_value.sum.return_value = 5
    cupy.ones.return_value.sum.return_value = 7
    runpy.run_path(str(EXAMPLES / "cupy_arrays.py"))
    calls = calls_of(cupy)
    given = [i for i, name in enumerate(calls) if name.endswith("set_allocator")]
    assert len(given) == 1 and given[0] < calls.index("arange")
    assert cupy.cuda.set_allocator.call_args[0][0] is rmm_cupy_allocator
    assert "the sum of the squares is 5.0" in capsys.readouterr().out
