# SPDX-License-Identifier: Apache-2.0
"""Builds and runs a program against the package, on the simulated GPU."""
import pathlib

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class UsesRmmC(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"
    test_type = "explicit"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            program = pathlib.Path(self.build_folder) / self.cpp.build.bindir / "uses_rmm_c"
            self.run(f"RMM_DRIVER=sim RMM_PUBLISH=0 {program}", env="conanrun")
