# SPDX-License-Identifier: Apache-2.0
"""import rmm is this package where a user asks for it, and only there."""
import os
import pathlib
import pickle
import subprocess
import sys

import numpy
import pytest

import rmm_c

FOLDER = pathlib.Path(rmm_c.alias.__file__).parent / "path"
DISTRIBUTION = pathlib.Path(__file__).resolve().parents[1] / "as_rmm"

# As pickle.dumps() makes them in RMM: a function of a module, and the contents.
PICKLE = """\
import pickle, sys
from types import ModuleType
name, data = {name!r}, {data!r}
for part in ("rmm", ".".join(name.split(".")[:2]), name):
    sys.modules[part] = ModuleType(part)
def to_device(b): pass
to_device.__module__ = name
to_device.__qualname__ = "to_device"
sys.modules[name].to_device = to_device
class Buffer:
    def __reduce__(self):
        return to_device, (data,)
sys.stdout.buffer.write(pickle.dumps(Buffer()))
"""


def run(program, *folders, warnings="error", **variables):
    """What a program prints, or its stderr if it fails, with folders before the package's own."""
    paths = [str(folder) for folder in folders] + [str(pathlib.Path(rmm_c.__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, "-W", warnings, "-c", program],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(paths), **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip()


@pytest.fixture
def rapids(tmp_path):
    """A folder with a package rmm as RMM installs it."""
    for name in ("rmm", "rmm/pylibrmm"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("__version__ = '25.12.00'\n")
    return tmp_path


def test_the_package_alone_is_not_rmm():
    assert run("import rmm_c; print(rmm_c.alias.is_active())") == "False"
    assert "No module named 'rmm'" in run("import rmm_c, rmm")


def test_the_module_prints_the_folder():
    command = [sys.executable, "-m", "rmm_c.alias"]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert output == f"{FOLDER}\n"
    assert [path.name for path in FOLDER.iterdir() if path.name != "__pycache__"] == ["rmm"]


PROGRAM = """
import rmm, rmm.mr, rmm.statistics, rmm.pylibrmm.device_buffer as buffers
from rmm.allocators import torch
from rmm.allocators.cupy import rmm_cupy_allocator
from rmm._lib.memory_resource import CudaMemoryResource
from rmm.pylibrmm.stream import Stream
import rmm_c, rmm_c.allocators.cupy, rmm_c._lib.memory_resource
import importlib.util, pkgutil, sys
assert rmm.mr is rmm_c.mr and rmm.rmm is rmm_c.rmm and rmm.pylibrmm is rmm_c.pylibrmm
assert buffers is rmm_c.pylibrmm.device_buffer and torch is rmm_c.allocators.torch
assert rmm_cupy_allocator is rmm_c.allocators.cupy.rmm_cupy_allocator
assert CudaMemoryResource is rmm_c.mr.CudaMemoryResource and Stream is rmm_c.pylibrmm.stream.Stream
assert rmm.DeviceBuffer is rmm_c.DeviceBuffer and rmm._lib is rmm_c._lib
assert rmm.reinitialize is rmm_c.reinitialize and rmm.RMMError is rmm_c.RMMError
assert (rmm.__name__, rmm.mr.__name__) == ("rmm", "rmm_c.mr")
assert tuple(int(part) for part in rmm.__version__.split(".")) >= (26, 10)
assert rmm.get_versions()["version"] == rmm.__version__ == rmm._version.__version__
assert rmm_c.__version__ != rmm.__version__ and rmm.__git_commit__ == ""
assert {"DeviceBuffer", "mr", "reinitialize", "__version__"} <= set(dir(rmm))
assert importlib.util.find_spec("rmm") is not None and rmm_c.alias.is_active()
assert importlib.util.find_spec("rmm.nothing") is None
assert importlib.util.find_spec("rmm.mr.experimental") is not None
assert {"mr", "statistics"} <= {module.name for module in pkgutil.iter_modules(rmm.__path__)}
for module in (rmm_c.mr, buffers, rmm_c.allocators.cupy):
    assert module.__spec__.name == module.__name__ and not module.__spec__._initializing
    assert importlib.reload(module) is module
try:
    import rmm.nothing
except ModuleNotFoundError as error:
    assert error.name == "rmm.nothing", error.name
exec("from rmm import" + " *")
assert DeviceBuffer is rmm.DeviceBuffer
try:
    rmm.nonsense
except AttributeError as error:
    assert "nonsense" in str(error)
rmm_c.as_rmm()
print("one and the same")
"""


def test_modules_of_rmm_are_those_of_the_package():
    assert run(PROGRAM, FOLDER) == "one and the same"
    assert run("import rmm_c; rmm_c.as_rmm(); rmm_c.as_rmm()\n" + PROGRAM) == "one and the same"
    assert run(PROGRAM, DISTRIBUTION) == "one and the same"


def test_the_distribution_has_the_file_of_the_folder():
    files = [folder / "rmm" / "__init__.py" for folder in (FOLDER, DISTRIBUTION)]
    assert files[0].read_text() == files[1].read_text()


@pytest.mark.parametrize("name", ["rmm.pylibrmm.device_buffer", "rmm._lib.device_buffer"])
@pytest.mark.parametrize("data", [b"some bytes", numpy.frombuffer(b"some bytes", dtype="u1")])
def test_a_pickle_of_rmm_is_a_buffer(name, data, tmp_path):
    program = PICKLE.format(name=name, data=bytes(data))
    made = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    (tmp_path / "pickle").write_bytes(made.stdout)
    load = f"import pickle; print(pickle.load(open({str(tmp_path / 'pickle')!r}, 'rb')).tobytes())"
    assert run(load, FOLDER) == "b'some bytes'"


def test_a_pickle_made_under_the_alias_needs_no_alias(tmp_path):
    dump = "import pickle, rmm, sys; sys.stdout.write(pickle.dumps("
    dump += "[rmm.DeviceBuffer.to_device(b'abc'), rmm.level_enum.warn], 0).decode('latin-1'))"
    buffer, level = pickle.loads(run(dump, FOLDER).encode("latin-1"))
    assert buffer.tobytes() == b"abc" and level is rmm_c.level_enum.warn


def test_an_rmm_that_is_installed_as_well_is_named(rapids):
    program = "import rmm; print(rmm.__version__)"
    ask = "import rmm_c; rmm_c.as_rmm()\n" + program
    for done in (run(program, FOLDER, rapids), run(ask, rapids)):
        lines = [line for line in done.splitlines() if "RuntimeWarning" in line]
        assert len(lines) == 1 and f"not RMM in {rapids / 'rmm'}" in lines[0]
    assert run(program, FOLDER, rapids, warnings="ignore") == "26.10.00"
    assert run(program, rapids) == "25.12.00"
    assert "rmm is imported already" in run("import rmm, rmm_c; rmm_c.as_rmm()", rapids)


def test_an_rmm_in_the_same_folder_is_refused(rapids):
    (rapids / "rmm" / "__init__.py").write_text((FOLDER / "rmm" / "__init__.py").read_text())
    said = run("import rmm", rapids).splitlines()[-1]
    assert said.startswith(f"ImportError: RMM and rmm-c-as-rmm are both installed in {rapids}")


def test_threads_and_processes_import_it_at_the_same_time():
    program = """
import importlib, multiprocessing, threading
import rmm
names = ["rmm.mr", "rmm._lib.logger", "rmm_c._lib.memory_resource", "rmm.statistics"]
names += ["rmm.allocators.torch", "rmm_c.allocators.torch"]
found = []
def work(name):
    found.append(importlib.import_module(name).__name__)
threads = [threading.Thread(target=work, args=(name,)) for name in names * 8]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(found) == 48 and len(set(found)) == 5, found
for way in ("fork", "spawn"):
    with multiprocessing.get_context(way).Pool(2) as pool:
        assert pool.map(len, [b"abc"]) == [3]
        assert pool.map(rmm.pylibrmm.helper.parse_bytes, ["1kB"]) == [1000]
print("done")
"""
    assert run(program, FOLDER) == "done"
