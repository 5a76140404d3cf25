# SPDX-License-Identifier: Apache-2.0
"""The examples of docstrings and of docs/python.md run, and the types of the C half are right."""
import ast
import doctest
import importlib
import inspect
import os
import pathlib
import pkgutil
import subprocess
import sys

import pytest

import rmm_c

PACKAGE = pathlib.Path(rmm_c.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parents[2]


def modules():
    for module in pkgutil.walk_packages([str(PACKAGE)], "rmm_c."):
        if not module.name.startswith("rmm_c.allocators.") and "._" not in module.name:
            yield module.name
    yield "rmm_c"
    for private in ("_base", "_resources", "_pools", "_adaptors", "_defaults"):
        yield f"rmm_c.pylibrmm.memory_resource.{private}"


@pytest.mark.parametrize("name", sorted(modules()))
def test_the_examples_of_docstrings_run(name):
    module = importlib.import_module(name)
    names = {**vars(rmm_c.mr), **vars(module)}
    names = {key: value for key, value in names.items() if not key.startswith("__")}
    failed, _ = doctest.testmod(
        module, extraglobs=names, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert failed == 0


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = (ROOT / "docs" / "python.md").read_text().splitlines()
    text = "\n".join("" if line.startswith("```") else line for line in lines)
    examples = doctest.DocTestParser().get_doctest(text, {}, "docs/python.md", None, 0)
    assert len(examples.examples) > 10
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.DocTestRunner(optionflags=flags).run(examples).failed == 0


def test_the_types_are_consistent(tmp_path):
    """mypy --strict finds nothing in the package, on the oldest Python, nor in a program. The
    frameworks need not be there: their classes are then of any type."""
    pytest.importorskip("mypy")
    names = rmm_c.pylibrmm.memory_resource.__all__
    program = [f"from rmm_c.mr import {name}\n" for name in [*names, "experimental"]]
    program += ["import pathlib\n", "import rmm_c\n"]
    program += ["rmm_c.set_logging_level(rmm_c.level_enum.debug)\n"]
    program += ["log = pathlib.Path('log.csv')\n", "rmm_c.enable_logging(log)\n"]
    program += ["rmm_c.reinitialize(logging=True, log_file_name=log)\n"]
    program += ["LoggingResourceAdaptor(CudaMemoryResource(), log)\n"]
    (tmp_path / "program.py").write_text("".join(program))
    command = [sys.executable, "-m", "mypy", "--python-version", "3.9", "-p", "rmm_c"]
    options = ["--strict", "--ignore-missing-imports", "--allow-subclassing-any"]
    options += ["--cache-dir", str(tmp_path)]
    output = subprocess.run(
        command + ["-m", "program"] + options,
        cwd=PACKAGE.parent,
        env=dict(os.environ, MYPYPATH=str(tmp_path)),
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    assert output.startswith("Success"), output


def test_the_types_of_the_c_half_are_those_at_run_time(tmp_path):
    """stubtest finds no function with other parameters, no other class, member or number."""
    pytest.importorskip("mypy.stubtest")
    settings = ["[mypy]", "ignore_missing_imports = True", f"cache_dir = {tmp_path}", ""]
    (tmp_path / "mypy.ini").write_text("\n".join(settings))
    # Python says of every C type that its __init__() takes anything; DeviceBuffer() does not.
    (tmp_path / "allowed").write_text("rmm_c._core.Buffer.__init__\n")
    command = [sys.executable, "-m", "mypy.stubtest", "rmm_c._core", "rmm_c._segments"]
    options = [f"--mypy-config-file={tmp_path}/mypy.ini", f"--allowlist={tmp_path}/allowed"]
    run = subprocess.run(
        command + options,
        cwd=PACKAGE.parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.returncode == 0, run.stdout


def test_every_public_thing_says_what_it_is():
    silent = []
    for name in sorted(modules()):
        module = importlib.import_module(name)
        if not module.__doc__:
            silent.append(name)
        for key, value in vars(module).items():
            if key.startswith("_") or getattr(value, "__module__", None) != name:
                continue
            if inspect.isclass(value) or inspect.isfunction(value):
                silent += [] if value.__doc__ else [f"{name}.{key}"]
            if inspect.isclass(value):
                silent += [
                    f"{name}.{key}.{member}"
                    for member, function in vars(value).items()
                    if inspect.isfunction(function)
                    and not member.startswith("_")
                    and not function.__doc__
                ]
    assert silent == []


@pytest.mark.parametrize("cls", [rmm_c._core.Buffer, rmm_c._core.Resource, rmm_c._core.Stream])
def test_the_methods_of_the_c_half_say_what_they_take(cls):
    methods = {key: value for key, value in vars(cls).items() if inspect.ismethoddescriptor(value)}
    public = [value for key, value in methods.items() if not key.startswith("_")]
    assert public and all(value.__doc__ for value in public)
    assert all("self" in inspect.signature(value).parameters for value in public)


@pytest.mark.parametrize("name", ["_core", "_segments"])
def test_the_types_of_the_c_half_name_what_is_there(name):
    """The stub has every function, class, member and number of the module, and no other."""
    module = importlib.import_module(f"rmm_c.{name}")
    stub = ast.parse((PACKAGE / f"{name}.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    numbers = {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
    present = {key for key in vars(module) if not key.startswith("__")}
    assert set(classes) | functions | numbers == present
    for key, node in classes.items():
        listed = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        members = {member for member in vars(getattr(module, key)) if not member.startswith("__")}
        assert {part for part in listed if not part.startswith("__")} == members
