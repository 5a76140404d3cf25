# SPDX-License-Identifier: Apache-2.0
"""The resource `auto`, and who gets it without asking."""
import pytest
from program import run


@pytest.mark.parametrize(
    "chosen, first, name",
    [
        ("", "import rmm_c.allocators.cupy", "pool_virtual"),
        ("cuda", "import rmm_c.allocators.cupy", "cuda"),
        ("", "import rmm_c.allocators.torch", "cuda"),  # as long as nobody wants its allocator
        ("", "mr.get_current_device_resource(); import rmm_c.allocators.cupy", "cuda"),
        ("auto", "", "pool_virtual"),
        ("", "", "cuda"),
    ],
)
def test_an_allocator_of_a_framework_prefers_auto(chosen, first, name):
    program = f"{first}\nprint(mr.get_current_device_resource().name)"
    assert run(program, RMM_RESOURCE=chosen) == name


def test_auto_takes_chunks_where_memory_cannot_be_mapped():
    program = """
pool = mr.get_current_device_resource()
print(type(pool).__name__, pool.name, type(pool.get_upstream()).__name__)
"""
    output = run(program, RMM_RESOURCE="auto", RMM_SIM_ATTRIBUTES="virtual_memory=0")
    assert output == "PoolMemoryResource pool CudaMemoryResource"
