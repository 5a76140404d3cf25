# SPDX-License-Identifier: Apache-2.0
"""Whole programs whose frameworks are watched, with a stand-in for PyTorch's figures."""
import os
import subprocess
import sys

STAND_IN = """
import sys, types
torch = types.ModuleType("torch")
figure = {"current": 5, "peak": 7, "allocated": 9}
stats = {"allocated_bytes": {"all": figure}, "allocation": {"all": figure}, "num_ooms": 0,
         "reserved_bytes": {"all": figure}, "segment": {"all": figure}}
torch.cuda = types.SimpleNamespace(
    is_initialized=lambda: True, get_allocator_backend=lambda: "native",
    device_count=lambda: 1, memory_stats_as_nested_dict=lambda device: stats)
sys.modules["torch"] = torch
"""

SHOWN = """
import os, rmm_c
def shown():
    tree = rmm_c.open_tree(os.environ["RMM_RUNTIME_DIR"])
    return [row["resource"] for row in tree.rows() if row["pid"] == os.getpid()]
"""


def run(arguments, tmp_path, **more):
    environment = dict(os.environ, RMM_RUNTIME_DIR=str(tmp_path), **more)
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def test_a_program_runs_unchanged_under_it(tmp_path):
    """As a file and as a module, with its arguments, its name, its folder and its exit status."""
    (tmp_path / "helper.py").write_text(SHOWN)
    (tmp_path / "train.py").write_text(
        STAND_IN
        + "from helper import shown\n"
        + "while not shown():\n    pass\n"
        + "print(__name__, sys.argv[1:], shown())\n"
        + "raise SystemExit(3)\n"
    )
    expected = (3, "__main__ ['-x', 'y'] ['1.torch']\n")
    file = [str(tmp_path / "train.py"), "-x", "y"]
    module = ["-m", "train", "-x", "y"]
    state = tmp_path / "run"
    state.mkdir()
    assert run(["-m", "rmm_c.frameworks", *file], state) == expected
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    assert run(["-m", "rmm_c.frameworks", *module], state, PYTHONPATH=paths) == expected
    status, text = run(["-m", "rmm_c.frameworks"], state)
    assert status == 1 and text.startswith("usage:")


def test_a_program_is_the_main_module_to_its_end(tmp_path):
    """What handlers at the exit, and processes that multiprocessing spawns, find there."""
    (tmp_path / "program.py").write_text(
        STAND_IN
        + """
import atexit, multiprocessing
def work(number):
    return number + 1
class Last:
    def __del__(self):
        print("the last thing")
if __name__ == "__main__":
    last = Last()
    atexit.register(lambda: print(sys.modules["__main__"].work(1)))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [5]))
"""
    )
    state = tmp_path / "run"
    state.mkdir()
    plain = run([str(tmp_path / "program.py")], state)
    assert plain == (0, "[6]\n2\nthe last thing\n")
    assert run(["-m", "rmm_c.frameworks", str(tmp_path / "program.py")], state) == plain


def test_children_show_nothing_and_end(tmp_path):
    """Forked while the thread works, again and again. All end by themselves."""
    program = (
        STAND_IN
        + SHOWN
        + """
from rmm_c import frameworks
frameworks.start(0.0001)
while not shown():
    pass
for i in range(50):
    child = os.fork()
    if child == 0:
        frameworks.stop()
        sys.exit(7 if shown() else 5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
assert shown() == ["1.torch"]
print("done")
"""
    )
    assert run(["-c", program], tmp_path) == (0, "done\n")


def test_the_end_of_a_program_does_not_wait_for_a_framework(tmp_path):
    """One that never answers."""
    program = STAND_IN + (
        "import threading\n"
        "asked = threading.Event()\n"
        "def never(device):\n"
        "    asked.set()\n"
        "    threading.Event().wait()\n"
        "torch.cuda.memory_stats_as_nested_dict = never\n"
        "from rmm_c import frameworks\n"
        "frameworks._Watcher.PATIENCE_S = 0.01\n"
        "frameworks.start(0.001)\n"
        "asked.wait()\n"
        "print('done')\n"
    )
    assert run(["-c", program], tmp_path) == (0, "done\n")
