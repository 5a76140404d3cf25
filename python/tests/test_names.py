# SPDX-License-Identifier: Apache-2.0
"""Every public name that RMM's package has had from 0.15 to 26.10 is where RMM had it."""
import os
import subprocess
import sys

import pytest

import rmm_c as rmm

RESOURCES = """BinningMemoryResource CudaMemoryResource FixedSizeMemoryResource
ManagedMemoryResource LoggingResourceAdaptor PoolMemoryResource _flush_logs _initialize
disable_logging enable_logging
get_current_device_resource get_current_device_resource_type get_log_filenames
get_per_device_resource get_per_device_resource_type is_initialized set_current_device_resource
set_per_device_resource CudaAsyncMemoryResource DeviceMemoryResource StatisticsResourceAdaptor
TrackingResourceAdaptor FailureCallbackResourceAdaptor CallbackMemoryResource
LimitingResourceAdaptor UpstreamResourceAdaptor PrefetchResourceAdaptor SamHeadroomMemoryResource
SystemMemoryResource available_device_memory ArenaMemoryResource"""
LATE_RESOURCES = RESOURCES + " CudaAsyncViewMemoryResource PinnedHostMemoryResource"
LOG = """flush_logger get_flush_level get_logging_level set_flush_level set_logging_level
should_log"""
BUFFER = "DeviceBuffer to_device copy_ptr_to_host copy_host_to_ptr copy_device_to_ptr"
STREAM = "Stream DEFAULT_STREAM LEGACY_DEFAULT_STREAM PER_THREAD_DEFAULT_STREAM"

# Where RMM has had its names, from 0.15 to 26.10; those that need another package are below.
NAMES = {
    "rmm_c": f"""mr DeviceBuffer RMMError is_initialized reinitialize to_device disable_logging
        enable_logging __version__ get_log_filenames register_reinitialize_hook
        unregister_reinitialize_hook {LOG} logging_level level_enum get_info csv_log""",
    "rmm_c.rmm": """RMMError reinitialize is_initialized register_reinitialize_hook
        unregister_reinitialize_hook to_device""",
    "rmm_c._version": "__version__ __git_commit__ get_versions",
    "rmm_c._cuda.gpu": """CUDARuntimeError CUDADriverError driverGetVersion getDevice setDevice
        runtimeGetVersion getDeviceCount getDeviceAttribute getDeviceProperties deviceGetName""",
    "rmm_c._cuda.stream": STREAM,
    "rmm_c._lib": "DeviceBuffer",
    "rmm_c._lib.cuda_stream": "CudaStream",
    "rmm_c._lib.cuda_stream_view": "CudaStreamView",
    "rmm_c._lib.device_buffer": BUFFER,
    "rmm_c._lib.logger": LOG + " logging_level",
    "rmm_c._lib.memory_resource": RESOURCES + " MemoryResource _set_per_device_resource",
    "rmm_c.librmm._logger": "logging_level level_enum",
    "rmm_c.mr": LATE_RESOURCES + " MemoryResource experimental",
    "rmm_c.mr.experimental": "CudaAsyncManagedMemoryResource",
    "rmm_c.pylibrmm": "DeviceBuffer memory_resource CudaStreamPool CudaStreamFlags",
    "rmm_c.pylibrmm.cuda_stream": "CudaStream CudaStreamFlags",
    "rmm_c.pylibrmm.cuda_stream_pool": "CudaStreamPool",
    "rmm_c.pylibrmm.device_buffer": BUFFER,
    "rmm_c.pylibrmm.helper": "parse_bytes",
    "rmm_c.pylibrmm.logger": LOG + " level_enum",
    "rmm_c.pylibrmm.memory_resource": LATE_RESOURCES + " experimental",
    "rmm_c.pylibrmm.memory_resource._memory_resource": LATE_RESOURCES,
    "rmm_c.pylibrmm.memory_resource.experimental": "CudaAsyncManagedMemoryResource",
    "rmm_c.pylibrmm.stream": STREAM + " CudaStreamFlags",
    "rmm_c.pylibrmm.utils": "as_stream",
    "rmm_c.statistics": """Statistics enable_statistics get_statistics push_statistics
        pop_statistics statistics ProfilerRecords profiler default_profiler_records
        ProfilerContext _get_descriptive_name_of_object""",
}


def run(program, **variables):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=dict(os.environ, **variables),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("module", sorted(NAMES))
def test_a_name_is_where_rmm_had_it(module):
    """Each in a fresh process, because an import of one module may load others."""
    program = f"""
import importlib
found = importlib.import_module({module!r})
print([name for name in {NAMES[module].split()!r} if not hasattr(found, name)])
"""
    assert run(program) == "[]"


def test_modules_are_attributes_after_the_import_of_the_package():
    paths = sorted({*NAMES} - {"rmm_c", "rmm_c.pylibrmm.memory_resource._memory_resource"})
    paths += ["rmm_c.allocators.torch", "rmm_c.allocators.cupy"]
    program = f"import rmm_c; print([eval(path).__name__ for path in {paths!r}] == {paths!r})"
    assert run(program) == "True"
    assert run("import rmm_c; print(rmm_c._lib.device_buffer.to_device(b'a').size)") == "1"


def test_the_import_loads_no_other_package():
    program = """
import sys, rmm_c, rmm_c._lib, rmm_c._cuda, rmm_c.allocators
others = ("cuda", "cupy", "numba", "numpy", "pandas", "torch")
print([name for name in others if name in sys.modules])
"""
    assert run(program) == "[]"


def test_what_is_not_there_is_an_attribute_error():
    for module in (rmm, rmm.rmm, rmm.allocators, rmm._cuda.gpu):
        with pytest.raises(AttributeError, match=f"'{module.__name__}' has no .* 'nonsense'"):
            module.nonsense
