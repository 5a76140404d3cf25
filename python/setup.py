# SPDX-License-Identifier: Apache-2.0
"""
Builds the extension module over librmm-c.

RMM_C_LIBRARY  the librmm-c.so to build with; the wheel then carries a copy of it, and of the
               librmm-sim.so beside it. Without it the installed one is used (pkg-config rmm-c),
               and the wheel carries none.
RMM_C_TOOLS    the prefix under which the programs rmm-... and the diagnosis library are installed;
               the wheel then carries them, and commands that run them.
RMM_C_INCLUDE  the folder of its headers, rmm/rmm.h below it; by default that of the source tree,
               or of the installed library.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig

import setuptools
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
# What is needed of the library's sources: around this folder, or in a source distribution with it.
TREE = HERE / "tree" if (HERE / "tree").exists() else HERE.parent
NEEDED = ("include", "lib/node", "lib/segment")
# One extension for all versions of Python from 3.9 on. Those without a GIL have no stable ABI.
IS_LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")
LIMITED = {
    "py_limited_api": IS_LIMITED,
    "define_macros": [("Py_LIMITED_API", "0x03090000")] if IS_LIMITED else [],
}
PROGRAMS = ("rmm-bench", "rmm-replay", "rmm-run", "rmm-timeline", "rmm-top")

if int(setuptools.__version__.split(".")[0]) < 61:  # older ones ignore pyproject.toml
    raise SystemExit(f"setuptools {setuptools.__version__} is too old: 61 or newer is needed")


def pkg_config(option):
    try:
        found = subprocess.run(
            ["pkg-config", option, "rmm-c"], stdout=subprocess.PIPE, check=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit(
            "librmm-c was not found: set RMM_C_LIBRARY to its file, or install it so that "
            "pkg-config rmm-c finds it"
        ) from None
    return found.stdout.split()


def include_folder():
    named = os.environ.get("RMM_C_INCLUDE")
    candidates = [pathlib.Path(named)] if named else [TREE / "include"]
    is_there = (candidates[0] / "rmm" / "rmm.h").exists()
    if not is_there and not named and not os.environ.get("RMM_C_LIBRARY"):
        candidates += [pathlib.Path(word[2:]) for word in pkg_config("--cflags-only-I")]
        candidates += [pathlib.Path(word) for word in pkg_config("--variable=includedir")]
    for folder in candidates:
        if (folder / "rmm" / "rmm.h").exists():
            return folder
    raise SystemExit(f"rmm/rmm.h is not in {candidates[0]}: set RMM_C_INCLUDE to its folder")


def version(include):
    text = (include / "rmm" / "version.h").read_text()
    numbers = re.findall(r"^#define RMM_C_VERSION_\w+ (\d+)$", text, re.MULTILINE)
    return ".".join(numbers)


def soname(library):
    """The name under which the loader looks for the library: its file in a wheel."""
    found = subprocess.run(
        ["objdump", "-p", str(library)], stdout=subprocess.PIPE, check=True, text=True
    )
    return re.search(r"SONAME\s+(\S+)", found.stdout).group(1)


def copy_library(library, target):
    shutil.copyfile(library, target)
    target.chmod(0o755)


def copy_tools(prefix, package):
    """The programs, and the diagnosis library where rmm-run looks for it: ../lib/rmm-c."""
    (package / "bin").mkdir(exist_ok=True)
    for name in PROGRAMS:
        copy_library(prefix / "bin" / name, package / "bin" / name)
    (found,) = prefix.glob("lib*/**/rmm-c/librmm-inject.so")
    (package / "lib" / "rmm-c").mkdir(parents=True, exist_ok=True)
    copy_library(found, package / "lib" / "rmm-c" / found.name)
    licences = prefix / "share" / "licenses"
    if licences.exists():
        shutil.copytree(licences, package / "licenses", dirs_exist_ok=True)


def listed(folder, pattern):
    """The sources of a library that its CMakeLists.txt lists: no list is in two places."""
    cmake = (folder / "CMakeLists.txt").read_text()
    words = re.search(pattern + r"\s(.*?)\)", cmake, re.DOTALL).group(1).split()
    return [str(folder / word) for word in words if word.endswith(".c")]


def reader_sources():
    """What finds and reads segments: the same as in rmm-top."""
    node, segment = TREE / "lib" / "node", TREE / "lib" / "segment"
    return (
        listed(node, r"set\(sources")
        + listed(segment, r"set\(common")
        + listed(segment, r"target_sources\(rmm_segment_reader PRIVATE")
    )


def link_arguments(library):
    if library:
        return [os.path.realpath(library), "-Wl,-rpath,$ORIGIN"]
    return pkg_config("--libs")


class BuildWithLibrary(build_ext):
    """Builds the extensions, and puts the library and its headers, for rmm_c.rapids, beside
    them."""

    def build_extension(self, ext):
        if ext.name == "rmm_c._segments":  # setup() refuses sources outside of its folder
            ext.sources = ext.sources + reader_sources()
        else:  # not before: a source distribution needs no library
            ext.extra_link_args = link_arguments(os.environ.get("RMM_C_LIBRARY"))
        super().build_extension(ext)

    def run(self):
        super().run()
        if self.inplace:
            return
        package = pathlib.Path(self.build_lib) / "rmm_c"
        shutil.copytree(INCLUDE / "rmm", package / "include" / "rmm", dirs_exist_ok=True)
        library = os.environ.get("RMM_C_LIBRARY")
        if library:
            name = soname(library)
            sim = name.replace("rmm-c", "rmm-sim")  # RMM_DRIVER=sim looks for it beside the other
            copy_library(library, package / name)
            copy_library(pathlib.Path(library).resolve().with_name(sim), package / sim)
        if TOOLS:
            copy_tools(pathlib.Path(TOOLS), package)


class SourcesWithTree(sdist):
    """Packs what is outside of this folder, too."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for folder in NEEDED:
            shutil.copytree(TREE / folder, pathlib.Path(base_dir) / "tree" / folder)
        licence = HERE / "LICENSE" if (HERE / "LICENSE").exists() else TREE / "LICENSE"
        shutil.copyfile(licence, pathlib.Path(base_dir) / "LICENSE")


def segment_reader():
    """The extension that reads the figures of processes; its reader is that of rmm-top."""
    return Extension(
        "rmm_c._segments",
        sources=["segments/segments.c"],
        include_dirs=[str(TREE / "lib"), str(INCLUDE)],
        extra_compile_args=CFLAGS + ["-fvisibility=hidden"],
        **LIMITED,
    )


INCLUDE = include_folder()
TOOLS = os.environ.get("RMM_C_TOOLS")
CFLAGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wshadow"]
CFLAGS += ["-Werror=implicit-function-declaration"]  # what the limited API lacks is undeclared
CFLAGS += os.environ.get("RMM_C_CFLAGS", "").split()

setup(
    version=version(INCLUDE),
    cmdclass={"build_ext": BuildWithLibrary, "sdist": SourcesWithTree},
    ext_modules=[
        Extension(
            "rmm_c._core",
            sources=sorted(
                os.path.relpath(path, HERE) for path in (HERE / "src").glob("*.c")
            ),
            depends=["src/buffer.h", "src/limited_api.h", "src/module.h"],
            include_dirs=[str(INCLUDE)],
            extra_compile_args=CFLAGS,
            **LIMITED,
        ),
        segment_reader(),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp39"}} if IS_LIMITED else {},
    py_modules=["rmm_c_programs"] if TOOLS else [],
    entry_points={"console_scripts": [f"{name} = rmm_c_programs:main" for name in PROGRAMS]}
    if TOOLS
    else {},
)
