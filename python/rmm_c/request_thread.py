# SPDX-License-Identifier: Apache-2.0
"""
A thread that obeys what is written into /rmm while the program is idle, such as a notebook.

Without it a program obeys trims, limits and requests for its blocks within its allocations.
RMM_REQUEST_THREAD=1 in the environment starts it as well.
"""
import atexit

from rmm_c import _core


def start() -> None:
    """Start the thread, or do so as soon as there is a resource."""
    _core.request_thread_start()


def stop() -> None:
    """Stop the thread, and wait for what it does."""
    _core.request_thread_stop()


atexit.register(stop)  # it may call Python functions of resources, which need the interpreter
