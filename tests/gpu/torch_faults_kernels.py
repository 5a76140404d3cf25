# SPDX-License-Identifier: Apache-2.0
"""Planted faults: kernels of CuPy, Numba and Triton over tensors of PyTorch."""
from torch_faults_scene import BEYOND, ELEMENTS, SMALL, fault

SOURCE = r"""
extern "C" __global__ void put(float *out, long long count)
{
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count;
         i += (long long)gridDim.x * blockDim.x)
        out[i] = i;
}
extern "C" __global__ void add(const float *in, float *out, long long count)
{
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count;
         i += (long long)gridDim.x * blockDim.x)
        out[i] += in[i];
}
"""


def _kernels(scene):
    """CuPy, its kernels, which are loaded, and PyTorch's main stream as CuPy's."""
    import cupy

    module = cupy.RawModule(code=SOURCE)
    put, add = module.get_function("put"), module.get_function("add")
    stream = cupy.cuda.ExternalStream(scene.main.cuda_stream)
    warm = scene.make()
    with stream:
        put((1,), (32,), (warm.data_ptr(), 32))
        add((1,), (32,), (warm.data_ptr(), warm.data_ptr() + 512, 32))
    scene.kept.append(warm)
    scene.torch.cuda.synchronize()
    return cupy, put, add, stream


@fault("cupy", memcheck=True)
def cupy_kernel_overruns(scene, is_bad):
    """A kernel gets a count that is larger than its tensor."""
    _, put, _, stream = _kernels(scene)
    tensor, behind = scene.make_small(), scene.make_small()
    count = SMALL + (BEYOND if is_bad else 0)
    with stream:
        put((64,), (256,), (tensor.data_ptr(), count))
    scene.end()
    del behind


@fault("cupy", memcheck=True)
def cupy_kernel_of_freed_tensor(scene, is_bad):
    """A kernel gets the address of a tensor that has been dropped; its block has a new owner."""
    _, put, _, stream = _kernels(scene)
    tensor = scene.make()
    address = tensor.data_ptr()
    if not is_bad:
        scene.kept.append(tensor)
    del tensor
    scene.take_again()
    with stream:
        put((64,), (256,), (address, ELEMENTS))
    scene.end()


@fault("cupy")
def cupy_kernel_not_recorded(scene, is_bad):
    """A kernel on the side stream reads a tensor that PyTorch then frees on the main stream."""
    cupy, _, add, _ = _kernels(scene)
    tensor, result = scene.make(), scene.make(0.0)
    scene.side.wait_stream(scene.main)
    with scene.on(scene.side):
        scene.delay()
    with cupy.cuda.ExternalStream(scene.side.cuda_stream):
        add((64,), (256,), (tensor.data_ptr(), result.data_ptr(), ELEMENTS))
    if not is_bad:
        tensor.record_stream(scene.side)
    del tensor
    scene.take_again()
    scene.end()


def _written_on_side(scene):
    tensor = scene.make(0.0)
    scene.torch.cuda.synchronize()
    with scene.on(scene.side):
        scene.delay()
        tensor.fill_(3.0)
    return tensor


@fault("cupy")
def cupy_array_without_stream(scene, is_bad):
    """An array over a tensor that the side stream still writes: __cuda_array_interface__ of PyTorch
    names no stream, and CuPy works on its own."""
    cupy, _, add, stream = _kernels(scene)
    result = scene.make(0.0)
    tensor = _written_on_side(scene)
    used = stream if is_bad else cupy.cuda.ExternalStream(scene.side.cuda_stream)
    array = cupy.asarray(tensor)
    with used:
        add((64,), (256,), (array, result.data_ptr(), ELEMENTS))
    scene.end()
    del array


class _Capsule:
    """A capsule for from_dlpack(), which asks for an order that the capsule does not have."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 2, 0  # kDLCUDA, the first device


@fault("cupy")
def cupy_capsule_without_stream(scene, is_bad):
    """A capsule of the old to_dlpack() orders nothing."""
    cupy, _, add, stream = _kernels(scene)
    result = scene.make(0.0)
    tensor = _written_on_side(scene)
    capsule = _Capsule(scene.torch.utils.dlpack.to_dlpack(tensor))
    if not is_bad:
        scene.side.synchronize()
    with stream:
        array = cupy.from_dlpack(capsule)
        add((64,), (256,), (array, result.data_ptr(), ELEMENTS))
    scene.end()
    del array


def _numba_kernels(scene):
    from numba import cuda

    @cuda.jit
    def put(out, count):
        i = cuda.grid(1)
        if i < count:
            out[i] = i

    stream = cuda.external_stream(scene.main.cuda_stream)
    warm = scene.make()
    put[1, 32, stream](cuda.as_cuda_array(warm), 32)
    scene.kept.append(warm)
    scene.torch.cuda.synchronize()
    return cuda, put, stream


@fault("numba", memcheck=True)
def numba_kernel_overruns(scene, is_bad):
    """A kernel without a check of the array's length gets a count that is too large."""
    cuda, put, stream = _numba_kernels(scene)
    tensor, behind = scene.make_small(), scene.make_small()
    count = SMALL + (BEYOND if is_bad else 0)
    put[(count + 255) // 256, 256, stream](cuda.as_cuda_array(tensor), count)
    scene.end()
    del behind


@fault("numba")
def numba_kernel_without_wait(scene, is_bad):
    """A kernel on the main stream writes what the side stream still writes."""
    cuda, put, stream = _numba_kernels(scene)
    tensor = _written_on_side(scene)
    array = cuda.as_cuda_array(tensor)
    if not is_bad:
        scene.main.wait_stream(scene.side)
    put[ELEMENTS // 256, 256, stream](array, ELEMENTS)
    scene.end()


def _triton_kernel(scene):
    import triton
    import triton_kernels_of_faults as kernels

    warm = scene.make()
    for is_masked in (False, True):
        kernels.add_one[(1,)](warm, warm, 512, BLOCK=512, IS_MASKED=is_masked)
    scene.kept.append(warm)
    scene.torch.cuda.synchronize()
    return triton, kernels.add_one


@fault("triton", memcheck=True)
def triton_store_without_mask(scene, is_bad):
    """The last program of a kernel stores a whole block, of which the tensor has a part."""
    triton, add_one = _triton_kernel(scene)
    source, result, behind = (scene.make_small() for _ in range(3))
    grid = (triton.cdiv(SMALL, 512),)
    add_one[grid](source, result, SMALL, BLOCK=512, IS_MASKED=not is_bad)
    scene.end()
    del behind


@fault("triton")
def triton_kernel_without_wait(scene, is_bad):
    """A kernel on the main stream reads what the side stream still writes."""
    _, add_one = _triton_kernel(scene)
    result = scene.make()
    tensor = _written_on_side(scene)
    if not is_bad:
        scene.main.wait_stream(scene.side)
    add_one[(ELEMENTS // 512,)](tensor, result, ELEMENTS, BLOCK=512, IS_MASKED=True)
    scene.end()
