# SPDX-License-Identifier: Apache-2.0
"""Planted faults: copies from and to the host, graphs, addresses that outlive their tensor."""
from torch_faults_scene import BEYOND, BYTES, ELEMENTS, SMALL, copy_async, fault, fill_async

# --- memory of the host that a copy still uses ------------------------------------------------


@fault()
def pinned_source_rewritten(scene, is_bad):
    """The program writes into a pinned tensor while a copy of it waits for its turn."""
    tensor, host = scene.make(), scene.pinned()
    scene.torch.cuda.synchronize()
    scene.delay()
    tensor.copy_(host, non_blocking=True)
    if not is_bad:
        scene.main.synchronize()
    host.fill_(2.0)
    scene.end()


@fault()
def staging_used_for_next_batch(scene, is_bad):
    """One pinned staging buffer for two batches, without a wait between them."""
    batches, staging = [scene.make(), scene.make()], scene.pinned()
    scene.torch.cuda.synchronize()
    scene.delay()
    for number, batch in enumerate(batches):
        staging.fill_(float(number))
        batch.copy_(staging, non_blocking=True)
        copied = scene.main.record_event()
        if not is_bad:
            copied.synchronize()
    scene.end()


@fault()
def pinned_source_freed(scene, is_bad):
    """A copy by the runtime, of which the allocator of pinned memory is not told; the tensor is
    dropped, and the next one gets its memory."""
    tensor, host = scene.make(), scene.pinned()
    scene.torch.cuda.synchronize()
    scene.delay()
    copy_async(tensor.data_ptr(), host.data_ptr(), BYTES, scene.main)
    if not is_bad:
        scene.main.synchronize()
    del host
    scene.kept.append(scene.torch.empty(ELEMENTS, pin_memory=True).fill_(2.0))
    scene.end()


@fault()
def pinned_target_freed(scene, is_bad):
    """As pinned_source_freed, with a copy to the host, which then writes into the next tensor."""
    tensor, host = scene.make(), scene.pinned()
    scene.torch.cuda.synchronize()
    scene.delay()
    copy_async(host.data_ptr(), tensor.data_ptr(), BYTES, scene.main)
    if not is_bad:
        scene.main.synchronize()
    del host
    scene.kept.append(scene.torch.empty(ELEMENTS, pin_memory=True).fill_(2.0))
    scene.end()


@fault()
def host_read_early(scene, is_bad):
    """The program reads the result of a copy that is still under way."""
    tensor, host = scene.make(), scene.pinned(0.0)
    scene.torch.cuda.synchronize()
    scene.delay()
    host.copy_(tensor, non_blocking=True)
    if not is_bad:
        scene.main.synchronize()
    float(host.sum())
    scene.end()


# --- graphs ---------------------------------------------------------------------------------------


def _graph(scene):
    graph = scene.torch.cuda.CUDAGraph()
    scene.graphs.append(graph)
    return graph


def _capture(scene, tensor):
    """A graph that delays, and adds a tensor to the sink of the stream that it is captured on."""
    graph = _graph(scene)
    stream = scene.torch.cuda.Stream()
    scene.sinks[stream.cuda_stream] = scene.make(0.0)
    scene.torch.cuda.synchronize()
    with scene.torch.cuda.graph(graph, stream=stream):
        scene.delay()
        scene.read(tensor)
    return graph


@fault()
def graph_input_freed(scene, is_bad):
    """The input of a graph is dropped after the capture, and its block is another tensor's when the
    graph is replayed."""
    tensor = scene.make()
    graph = _capture(scene, tensor)
    kept = None if is_bad else tensor
    del tensor
    scene.take_again()
    graph.replay()
    scene.end()
    del kept


@fault()
def graph_input_replaced(scene, is_bad):
    """The name of the input is bound to a new tensor; the graph reads the old one."""
    static = scene.make()
    graph = _capture(scene, static)
    fresh = scene.make(5.0)
    if is_bad:
        static = fresh
    else:
        static.copy_(fresh)
    scene.take_again()
    graph.replay()
    scene.end()
    del static


@fault()
def graph_input_freed_under_replay(scene, is_bad):
    """The input is dropped while the replay that reads it is still to come."""
    tensor = scene.make()
    graph = _capture(scene, tensor)
    scene.side.wait_stream(scene.main)
    with scene.on(scene.side):
        graph.replay()
    if not is_bad:
        scene.side.synchronize()
        graph.reset()
    del tensor
    scene.take_again()
    scene.end()


@fault()
def graph_input_refilled_early(scene, is_bad):
    """The input of the next replay is copied in while the replay before still reads it."""
    static, host = scene.make(), scene.pinned(5.0)
    graph = _capture(scene, static)
    graph.replay()
    if not is_bad:
        scene.side.wait_stream(scene.main)
    with scene.on(scene.side):
        static.copy_(host, non_blocking=True)
    scene.end()


@fault()
def graph_replayed_unordered(scene, is_bad):
    """A replay on the side stream reads what the main stream has not yet written."""
    static = scene.make()
    graph = _capture(scene, static)
    scene.delay()
    scene.delay()
    static.fill_(5.0)
    if not is_bad:
        scene.side.wait_stream(scene.main)
    with scene.on(scene.side):
        graph.replay()
    scene.end()


def _capture_result(scene, source, pool=None):
    graph = _graph(scene)
    with scene.torch.cuda.graph(graph, pool=pool):
        scene.delay()
        result = source * 2.0
    return graph, result


@fault()
def graph_result_read_unordered(scene, is_bad):
    """The result of a replay on the side stream is read on the main stream without a wait."""
    source = scene.make()
    graph, result = _capture_result(scene, source)
    with scene.on(scene.side):
        graph.replay()
    if not is_bad:
        scene.main.wait_stream(scene.side)
    scene.read(result)
    scene.end()


class _Alias:
    """An address without an owner, as weak references to results of graphs have it."""

    def __init__(self, tensor):
        self.__cuda_array_interface__ = {
            "shape": (tensor.numel(),),
            "typestr": "<f4",
            "data": (tensor.data_ptr(), False),
            "version": 3,
            "strides": None,
        }


@fault()
def graph_pool_taken_by_next(scene, is_bad):
    """Two graphs share a private pool. The result of the first, held by its address only, has its
    memory taken by the second, and is read after both have run."""
    source, other = scene.make(), scene.make(3.0)
    scene.torch.cuda.synchronize()
    first, result = _capture_result(scene, source)
    alias = scene.torch.as_tensor(_Alias(result), device="cuda")
    if is_bad:
        del result
    second, another = _capture_result(scene, other, pool=first.pool())
    first.replay()
    second.replay()
    scene.read(alias)
    scene.end()
    del another


# --- addresses -----------------------------------------------------------------------------------


@fault(memcheck=True)
def address_kept(scene, is_bad):
    """A fill by an address whose tensor has been dropped."""
    tensor = scene.make()
    address = tensor.data_ptr()
    if not is_bad:
        scene.kept.append(tensor)
    del tensor
    fill_async(address, BYTES, scene.main)
    scene.end()


@fault(memcheck=True)
def address_kept_by_copy(scene, is_bad):
    """A copy from an address whose tensor has been dropped, and whose block has a new owner."""
    tensor, result = scene.make(), scene.make(0.0)
    address = tensor.data_ptr()
    if not is_bad:
        scene.kept.append(tensor)
    del tensor
    scene.take_again()
    copy_async(result.data_ptr(), address, BYTES, scene.main)
    scene.end()


@fault(memcheck=True)
def fill_too_large(scene, is_bad):
    """A fill by the runtime that leaves its tensor."""
    tensor, behind = scene.make_small(), scene.make_small()
    count = tensor.nbytes + (4 * BEYOND if is_bad else 0)
    fill_async(tensor.data_ptr(), count, scene.main)
    scene.end()
    del behind


@fault(memcheck=True)
def copy_too_large(scene, is_bad):
    """A copy by the runtime that writes behind its target: as many bytes as the source has."""
    source, target = scene.make_small(SMALL + BEYOND), scene.make_small()
    behind = scene.make_small()
    count = source.nbytes if is_bad else target.nbytes
    copy_async(target.data_ptr(), source.data_ptr(), count, scene.main)
    scene.end()
    del behind


@fault(memcheck=True)
def copy_beyond_source(scene, is_bad):
    """A copy by the runtime that begins within a tensor, and has the bytes of all of it."""
    source, target = scene.make_small(), scene.make_small()
    behind, offset = scene.make_small(), 4 * BEYOND
    count = source.nbytes - (0 if is_bad else offset)
    copy_async(target.data_ptr(), source.data_ptr() + offset, count, scene.main)
    scene.end()
    del behind


@fault()
def freed_twice(scene, is_bad):
    """A block of PyTorch's allocator that the program frees twice."""
    torch = scene.torch
    address = torch.cuda.caching_allocator_alloc(BYTES)
    fill_async(address, BYTES, scene.main)
    torch.cuda.synchronize()
    torch.cuda.caching_allocator_delete(address)
    if is_bad:
        try:
            torch.cuda.caching_allocator_delete(address)
        except RuntimeError as error:
            print(f"refused: {error}")
    scene.end()


@fault()
def storage_resized_under_alias(scene, is_bad):
    """A storage is emptied, as sharded training does it, while a tensor from DLPack still has its
    memory."""
    tensor = scene.make()
    alias = scene.torch.from_dlpack(tensor)
    scene.torch.cuda.synchronize()
    if not is_bad:
        alias = alias.clone()
    tensor.untyped_storage().resize_(0)
    scene.take_again()
    scene.read(alias)
    scene.end()


@fault()
def array_interface_without_owner(scene, is_bad):
    """An object with __cuda_array_interface__ that keeps no reference of its tensor."""
    tensor = scene.make()
    alias = scene.torch.as_tensor(_Alias(tensor), device="cuda")
    if not is_bad:
        scene.kept.append(tensor)
    del tensor
    scene.take_again()
    scene.read(alias)
    scene.end()
