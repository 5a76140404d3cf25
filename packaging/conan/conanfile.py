# SPDX-License-Identifier: Apache-2.0
"""
Conan 2's recipe of the library, from the tree around it:

    conan create packaging/conan --build=missing

The library only, with the simulated GPU; programs and the daemon have packages of the system. What it
needs of CUDA comes from the machine (CUDAToolkit_ROOT), as Conan Center has no toolkit.
"""
import pathlib
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir

TREE = pathlib.Path(__file__).resolve().parents[2]


class RmmC(ConanFile):
    name = "rmm-c"
    description = "GPU memory pools in C, visible as files"
    license = "Apache-2.0"
    topics = ("gpu", "cuda", "memory", "allocator")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "cuda": [True, False]}
    default_options = {"shared": True, "fPIC": True, "cuda": True}
    implements = ["auto_shared_fpic"]
    languages = "C"

    def set_version(self):
        text = (TREE / "include/rmm/version.h").read_text(encoding="utf-8")
        self.version = ".".join(re.findall(r"^#define RMM_C_VERSION_\w+ (\d+)$", text, re.M))

    def export_sources(self):
        for folder in ("cmake", "compat", "compat-classic", "docs", "examples", "include", "lib"):
            copy(self, f"{folder}/*", TREE, self.export_sources_folder)
        for file in ("CMakeLists.txt", "CHANGELOG.md", "LICENSE", "README.md", "packaging/*"):
            copy(self, file, TREE, self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("rmm-c is for Linux")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update({
            "RMM_CUDA": "ON" if self.options.cuda else "OFF", "RMM_BUILD_TESTS": "OFF",
            "RMM_BUILD_TOOLS": "OFF", "RMM_BUILD_FUSEFS": "OFF", "RMM_BUILD_INJECT": "OFF"})
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        for target in ("rmm_c", "rmm_sim"):
            cmake.build(target=target)

    def package(self):
        for component in ("library", "development"):
            CMake(self).install(component=component)
        copy(self, "LICENSE", self.source_folder, f"{self.package_folder}/licenses")
        rmdir(self, f"{self.package_folder}/share")

    def package_info(self):
        # CMake finds the files that the library brings: find_package(rmm-c), rmm-c::rmm, rmm-c::rmm-sim
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/rmm-c"]
        self.cpp_info.libs = ["rmm-c"]
        self.cpp_info.set_property("pkg_config_name", "rmm-c")
        if not self.options.shared:
            self.cpp_info.system_libs = ["pthread", "dl", "m"]
