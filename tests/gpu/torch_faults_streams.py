# SPDX-License-Identifier: Apache-2.0
"""Planted faults: tensors that two streams use, where a wait or a record_stream() is missing."""
import queue
import threading

from torch_faults_scene import ELEMENTS, fault

# --- freed while another stream still uses it -------------------------------------------------


def _use_late(scene, tensor):
    scene.side.wait_stream(scene.main)
    with scene.on(scene.side):
        scene.delay()
        scene.read(tensor)


@fault()
def record_stream_missing(scene, is_bad):
    """Read on a side stream, dropped, and its block written anew on the main stream."""
    tensor = scene.make()
    _use_late(scene, tensor)
    if not is_bad:
        tensor.record_stream(scene.side)
    del tensor
    scene.take_again()
    scene.end()


@fault()
def record_stream_of_slice(scene, is_bad):
    """As record_stream_missing; the side stream sees a slice only."""
    tensor = scene.make()
    part = tensor[ELEMENTS // 2 :]
    _use_late(scene, part)
    if not is_bad:
        part.record_stream(scene.side)
    del tensor, part
    scene.take_again()
    scene.end()


@fault()
def record_stream_of_view(scene, is_bad):
    """A transposed view is written on the side stream."""
    tensor = scene.make()
    view = tensor.view(1024, -1).t()
    scene.side.wait_stream(scene.main)
    with scene.on(scene.side):
        scene.delay()
        view.fill_(3.0)
    if not is_bad:
        view.record_stream(scene.side)
    del tensor, view
    scene.take_again()
    scene.end()


@fault()
def record_stream_of_result_only(scene, is_bad):
    """Recorded for what the side stream writes, not for what it reads."""
    tensor, result = scene.make(), scene.make(0.0)
    scene.side.wait_stream(scene.main)
    with scene.on(scene.side):
        scene.delay()
        result.copy_(tensor)
    result.record_stream(scene.side)
    if not is_bad:
        tensor.record_stream(scene.side)
    del tensor
    scene.take_again()
    scene.end()


@fault()
def record_stream_of_wrong_stream(scene, is_bad):
    """Recorded for a stream that does not use it."""
    tensor = scene.make()
    _use_late(scene, tensor)
    tensor.record_stream(scene.other if is_bad else scene.side)
    del tensor
    scene.take_again()
    scene.end()


@fault()
def prefetched_batch(scene, is_bad):
    """A loader copies batches on its own stream; the next copy takes the block of the batch that
    the main stream still reads."""
    host = [scene.pinned(float(i)) for i in range(2)]
    with scene.on(scene.side):
        batch = scene.torch.empty(ELEMENTS, device="cuda")
    for source in host:
        with scene.on(scene.side):
            if batch is None:
                batch = scene.torch.empty(ELEMENTS, device="cuda")
            batch.copy_(source, non_blocking=True)
        scene.main.wait_stream(scene.side)
        scene.delay()
        scene.read(batch)
        if not is_bad:
            batch.record_stream(scene.main)
        batch = None
    scene.end()


@fault()
def gradient_hook(scene, is_bad):
    """As in distributed training: a hook reduces a gradient on a stream for communication, and
    drops it."""
    weight = scene.make().requires_grad_()
    bucket = scene.make(0.0)
    scene.torch.cuda.synchronize()

    def reduce(parameter):
        stream = scene.torch.cuda.current_stream()
        scene.side.wait_stream(stream)
        with scene.on(scene.side):
            scene.delay()
            bucket.copy_(parameter.grad)
        if not is_bad:
            parameter.grad.record_stream(scene.side)
        parameter.grad = None

    weight.register_post_accumulate_grad_hook(reduce)
    weight.backward(gradient=scene.make(2.0))
    scene.take_again()
    scene.take_again()
    scene.end()


@fault()
def offloaded_activation(scene, is_bad):
    """Copied to the host on a stream for copies, and dropped before the copy has run."""
    tensor, host = scene.make(), scene.pinned(0.0)
    scene.side.wait_stream(scene.main)
    with scene.on(scene.side):
        scene.delay()
        host.copy_(tensor, non_blocking=True)
    if not is_bad:
        tensor.record_stream(scene.side)
    del tensor
    scene.take_again()
    scene.end()


@fault()
def side_result_dropped(scene, is_bad):
    """Made on the side stream, read on the main stream, and dropped; the side stream takes its
    block for the next one."""
    with scene.on(scene.side):
        result = scene.make()
    scene.main.wait_stream(scene.side)
    scene.delay()
    scene.read(result)
    if not is_bad:
        result.record_stream(scene.main)
    del result
    with scene.on(scene.side):
        scene.take_again()
    scene.end()


@fault()
def queue_between_threads(scene, is_bad):
    """A thread makes a tensor on its stream, another one reads it on another stream after a wait,
    and drops it."""
    work, done = queue.Queue(), threading.Event()

    def consume():
        tensor, event = work.get()
        scene.other.wait_event(event)
        with scene.on(scene.other):
            scene.delay()
            scene.read(tensor)
        if not is_bad:
            tensor.record_stream(scene.other)
        del tensor
        done.set()

    consumer = threading.Thread(target=consume)
    consumer.start()
    with scene.on(scene.side):
        work.put((scene.make(), scene.side.record_event()))
        done.wait()
        scene.take_again()
    consumer.join()
    scene.end()


@fault()
def empty_on_another_stream(scene, is_bad):
    """torch.empty() gives a block of the main stream, whose last use there is not over, and the
    side stream writes it without a wait."""
    old, result = scene.make(), scene.make(0.0)
    scene.torch.cuda.synchronize()
    scene.delay()
    result.copy_(old)
    del old
    fresh = scene.torch.empty(ELEMENTS, device="cuda")
    if not is_bad:
        scene.side.wait_stream(scene.main)
    with scene.on(scene.side):
        fresh.fill_(5.0)
    scene.end()


# --- used without a wait ------------------------------------------------------------------------


def _write_late(scene, tensor):
    scene.delay()
    tensor.fill_(3.0)


def _read_on_side(scene, tensor):
    with scene.on(scene.side):
        scene.read(tensor)


def _settled(scene):
    tensor = scene.make()
    scene.torch.cuda.synchronize()
    return tensor


@fault()
def wait_missing_before_side(scene, is_bad):
    """The side stream reads what the main stream has not yet written."""
    tensor = _settled(scene)
    _write_late(scene, tensor)
    if not is_bad:
        scene.side.wait_stream(scene.main)
    _read_on_side(scene, tensor)
    scene.end()


@fault()
def wait_missing_after_side(scene, is_bad):
    """The main stream reads what the side stream has not yet written."""
    tensor = _settled(scene)
    with scene.on(scene.side):
        _write_late(scene, tensor)
    if not is_bad:
        scene.main.wait_stream(scene.side)
    scene.read(tensor)
    scene.end()


@fault()
def wait_in_wrong_direction(scene, is_bad):
    """The stream that is ahead waits for the one behind."""
    tensor = _settled(scene)
    _write_late(scene, tensor)
    if is_bad:
        scene.main.wait_stream(scene.side)
    else:
        scene.side.wait_stream(scene.main)
    _read_on_side(scene, tensor)
    scene.end()


@fault()
def wait_for_third_stream(scene, is_bad):
    """The side stream waits, but for a stream that wrote nothing."""
    tensor = _settled(scene)
    _write_late(scene, tensor)
    scene.side.wait_stream(scene.other if is_bad else scene.main)
    _read_on_side(scene, tensor)
    scene.end()


@fault()
def event_recorded_early(scene, is_bad):
    """The event is recorded before the write that it stands for."""
    tensor, event = _settled(scene), scene.torch.cuda.Event()
    event.record(scene.main)
    _write_late(scene, tensor)
    if not is_bad:
        event.record(scene.main)
    scene.side.wait_event(event)
    _read_on_side(scene, tensor)
    scene.end()


@fault()
def event_never_recorded(scene, is_bad):
    """A wait for an event that nobody has recorded does nothing."""
    tensor, event = _settled(scene), scene.torch.cuda.Event()
    _write_late(scene, tensor)
    if not is_bad:
        event.record(scene.main)
    scene.side.wait_event(event)
    _read_on_side(scene, tensor)
    scene.end()


@fault()
def event_waited_on_wrong_stream(scene, is_bad):
    """Another stream than the one that reads waits for the event."""
    tensor = _settled(scene)
    _write_late(scene, tensor)
    event = scene.main.record_event()
    event.wait(scene.other if is_bad else scene.side)
    _read_on_side(scene, tensor)
    scene.end()


@fault()
def event_recorded_on_wrong_stream(scene, is_bad):
    """The event is recorded on a stream that wrote nothing."""
    tensor, event = _settled(scene), scene.torch.cuda.Event()
    _write_late(scene, tensor)
    event.record(scene.other if is_bad else scene.main)
    scene.side.wait_event(event)
    _read_on_side(scene, tensor)
    scene.end()


@fault()
def event_recorded_again(scene, is_bad):
    """One event for two purposes: the second record replaces the first, before the wait."""
    tensor, event = _settled(scene), scene.torch.cuda.Event()
    another = event if is_bad else scene.torch.cuda.Event()
    _write_late(scene, tensor)
    event.record(scene.main)
    another.record(scene.other)
    scene.side.wait_event(event)
    _read_on_side(scene, tensor)
    scene.end()


@fault()
def written_while_read(scene, is_bad):
    """In-place work on the main stream overtakes a reader on the side stream."""
    tensor = _settled(scene)
    _use_late(scene, tensor)
    if not is_bad:
        scene.main.wait_stream(scene.side)
    tensor.fill_(9.0)
    scene.end()


@fault()
def written_twice(scene, is_bad):
    """Two streams write one tensor, and the earlier write wins."""
    tensor = _settled(scene)
    with scene.on(scene.side):
        _write_late(scene, tensor)
    if not is_bad:
        scene.main.wait_stream(scene.side)
    tensor.fill_(9.0)
    scene.end()


@fault()
def copied_while_written(scene, is_bad):
    """A copy between tensors reads what another stream has not yet written."""
    tensor, result = _settled(scene), _settled(scene)
    _write_late(scene, tensor)
    if not is_bad:
        scene.side.wait_stream(scene.main)
    with scene.on(scene.side):
        result.copy_(tensor)
    scene.end()


@fault()
def synchronised_wrong_stream(scene, is_bad):
    """The program waits for another stream than the one that writes."""
    tensor = _settled(scene)
    with scene.on(scene.side):
        _write_late(scene, tensor)
    (scene.other if is_bad else scene.side).synchronize()
    scene.read(tensor)
    scene.end()


@fault()
def event_only_queried(scene, is_bad):
    """The program asks whether the event is done, and goes on whatever the answer is."""
    tensor = _settled(scene)
    with scene.on(scene.side):
        _write_late(scene, tensor)
        event = scene.side.record_event()
    if is_bad:
        event.query()
    else:
        event.synchronize()
    scene.read(tensor)
    scene.end()


@fault()
def thread_does_not_inherit_stream(scene, is_bad):
    """A thread that is started within a stream's block begins on the default stream."""
    tensor = _settled(scene)

    def work():
        with scene.on(scene.main if is_bad else scene.side):
            scene.read(tensor)

    with scene.on(scene.side):
        _write_late(scene, tensor)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    scene.end()


@fault()
def scratch_shared_by_threads(scene, is_bad):
    """Two threads, each with its own stream, write the same scratch tensor."""
    shared = [_settled(scene), _settled(scene)]
    turn = threading.Event()

    def first():
        with scene.on(scene.side):
            _write_late(scene, shared[0])
            scene.read(shared[0])
        turn.set()

    def second():
        turn.wait()
        with scene.on(scene.other):
            own = shared[0 if is_bad else 1]
            own.fill_(4.0)
            scene.read(own)

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scene.end()
