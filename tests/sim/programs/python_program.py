# SPDX-License-Identifier: Apache-2.0
"""Mistakes with memory in a program of Python, at lines that end in "# at NAME".

usage: python_program.py SCENARIO
RMM_TEST_LIBRARY names librmm-c, RMM_TEST_HELPER python_helper.c's library. With RMM_TEST_HOLDS its
calls hold the GIL, else they release it.
"""
import ctypes
import os
import sys
import threading

rmm = (ctypes.PyDLL if "RMM_TEST_HOLDS" in os.environ else ctypes.CDLL)(
    os.environ["RMM_TEST_LIBRARY"])
for name, types in {
        "rmm_cuda_resource_create": "p", "rmm_memset_async": "pinp", "rmm_resource_alloc": "pnnpp",
        "rmm_resource_dealloc": "ppnnp"}.items():
    getattr(rmm, name).argtypes = [
        {"p": ctypes.c_void_p, "i": ctypes.c_int, "n": ctypes.c_size_t}[kind] for kind in types]
resource = ctypes.c_void_p()


def allocate(size):
    block = ctypes.c_void_p()
    assert rmm.rmm_resource_alloc(resource, size, 0, None, ctypes.byref(block)) == 0
    return block


def free(block, size):
    rmm.rmm_resource_dealloc(resource, block, size, 0, None)


def overrun(block, size):
    assert rmm.rmm_memset_async(block, 0, size + 1, None) == 0


class Trainer:
    def step(self):
        first = allocate(1000)  # at allocation
        second = allocate(2000)  # at other allocation
        for _ in range(3):
            overrun(first, 1000)  # at first
            overrun(second, 2000)  # at second
        free(first, 1000)  # at free
        free(first, 1000)  # at second free


def lines():
    Trainer().step()  # at call


def thread():
    """Beside a main thread that computes, and one that waits."""
    def work():
        for _ in range(200):
            free(allocate(100), 100)
        overrun(allocate(3000), 3000)  # at thread

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    sum(range(1000000))
    for one in threads:
        one.join()


def recurse(depth):
    if depth == 0:
        overrun(allocate(10), 10)  # at bottom
    else:
        recurse(depth - 1)  # at recursion


def deep():
    sys.setrecursionlimit(5000)
    recurse(3000)


def suspended():
    """A generator in a generator, and coroutines, that go on elsewhere than they began."""
    def inner():
        yield 1
        overrun(allocate(20), 20)  # at generator
        yield 2

    def outer():
        yield from inner()  # at outer generator

    async def coroutine():
        overrun(allocate(21), 21)  # at coroutine

    async def awaiting():
        await coroutine()  # at await

    generator = outer()
    next(generator)
    next(generator)
    try:
        awaiting().send(None)
    except StopIteration:
        pass


def names():
    """The number of the line tells which name it is of; each piece of code is gone behind it."""
    odd = ["grün/\u65e5\u672c.py", "/x" * 2000 + "/end.py", "bell\a\x1b[31m\nnew\ttab.py",
           "\udcff.py", ""]
    for number, name in enumerate(odd, 1):
        text = "def odd_{0}():\n    overrun(allocate({1}), {1})\nodd_{0}()"
        source = "\n" * number + text.format("é" * 100, 30 + number)
        exec(compile(source, name, "exec"), {"overrun": overrun, "allocate": allocate})


def many():
    """More pieces of code than have room: each line that is the same is one."""
    known = {"free": free, "allocate": allocate}
    for _ in range(9000):
        exec(compile("free(allocate(40), 40)", "same.py", "exec"), known)
    overrun(allocate(41), 41)  # at behind many


class Late:
    def __init__(self, size):
        self.block = allocate(size)

    def __del__(self):
        overrun(self.block, 51)  # at destructor


def end():
    """At the interpreter's end, while another thread works on without the GIL."""
    import atexit
    atexit.register(lambda: overrun(late.block, 50))  # at atexit
    threading.Thread(target=helper().work_on, args=(resource,), daemon=True).start()


def helper():
    return ctypes.CDLL(os.environ["RMM_TEST_HELPER"])


def foreign():
    """A thread that Python does not know, while this one is in C code and has frames."""
    assert helper().overrun_in_thread(resource) == 0  # at foreign


def fork():
    import warnings
    warnings.simplefilter("ignore")
    overrun(allocate(60), 60)  # at parent
    child = os.fork()
    if child == 0:
        sys.exit(7)  # which cannot use the GPU, and ends its interpreter
    assert os.waitpid(child, 0)[1] == 7 << 8
    overrun(allocate(62), 62)  # at parent later


def subinterpreter():
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        import _interpreters as interpreters
    legacy = {"isolated": False} if sys.version_info < (3, 13) else {}
    made = interpreters.create(**legacy) if legacy else interpreters.create("legacy")
    interpreters.run_string(made, (
        "import sys; sys.argv, name = ['', 'lines'], %r\n"
        "exec(compile(open(name).read(), name, 'exec'), {'__name__': '__main__'})" % __file__))
    interpreters.destroy(made)
    overrun(allocate(70), 70)  # at main interpreter


def broken():
    """An exception is on its way while a call is made."""
    class Guard:
        def __del__(self):
            overrun(allocate(80), 80)  # at unwinding

    def fail():
        guard = Guard()
        raise KeyError(str(type(guard)))

    try:
        fail()
    except KeyError:
        pass


assert rmm.rmm_cuda_resource_create(ctypes.byref(resource)) == 0
free(allocate(1), 1)  # the diagnosis begins, and Python is asked between here
late = Late(50) if sys.argv[1] == "end" else None  # and there
globals()[sys.argv[1]]()
