# SPDX-License-Identifier: Apache-2.0
"""
The exceptions of the package: one for each failure status of the library.

Each is an RMMError and also the class that a Python program expects, so code written for RMM,
which catches MemoryError or RuntimeError, works unchanged.

>>> issubclass(OutOfMemoryError, MemoryError)
True
"""
import errno
import os
from contextlib import contextmanager
from typing import Dict, Iterator, Tuple, Type


class RMMError(Exception):
    """A call of the library failed.

    ``errcode`` is the status as a number; the text says why.
    """

    def __init__(self, errcode: int, msg: str) -> None:
        self.errcode = errcode
        super().__init__(msg)

    def __reduce__(self) -> Tuple[Type["RMMError"], Tuple[int, str]]:
        return type(self), (self.errcode, str(self))


class InvalidArgumentError(RMMError, ValueError, RuntimeError):
    """An argument is not valid."""


class InvalidAlignmentError(InvalidArgumentError):
    """An alignment is not a power of two in its range."""


class OutOfRangeError(RMMError, IndexError):
    """An offset or a scope does not exist."""


class BadAllocError(RMMError, MemoryError):
    """An allocation failed for another reason than a lack of memory."""


class OutOfMemoryError(BadAllocError):
    """The device, a pool or a limit is full."""


class OutOfHostMemoryError(RMMError, MemoryError):
    """The host has no memory for the accounting."""


class CudaError(RMMError, RuntimeError):
    """A call of CUDA failed."""


class NoDeviceError(RMMError, RuntimeError):
    """There is no usable GPU."""


class UnsupportedError(RMMError, RuntimeError):
    """The device, the driver or the resource cannot do this."""


class AsleepError(RMMError, RuntimeError):
    """The pool is asleep: wake it first."""


class InUseError(RMMError, RuntimeError):
    """What the call needs is in use; it may succeed later."""


class FileError(RMMError, OSError):
    """A file cannot be read or written. ``errno`` says why; EIO, if the system gave no reason.

    >>> error = FileError(-9, "cannot open the log: " + os.strerror(errno.ENOENT))
    >>> error.errno == errno.ENOENT, str(error) == error.args[0]
    (True, True)
    """

    def __init__(self, errcode: int, msg: str) -> None:
        super().__init__(errcode, msg)
        self.errno = _errno_in(msg)
        self.strerror = os.strerror(self.errno)

    def __str__(self) -> str:
        return str(self.args[0])


def _errno_in(message: str) -> int:
    """The library puts the system's reason into its messages, behind a colon."""
    named = [number for number in errno.errorcode if f": {os.strerror(number)}" in message]
    return max(named, key=lambda number: len(os.strerror(number)), default=errno.EIO)


_BY_NAME: Dict[str, Type[RMMError]] = {
    "RMM_ERR_INVALID_ARGUMENT": InvalidArgumentError,
    "RMM_ERR_OUT_OF_RANGE": OutOfRangeError,
    "RMM_ERR_OUT_OF_MEMORY": OutOfMemoryError,
    "RMM_ERR_BAD_ALLOC": BadAllocError,
    "RMM_ERR_OUT_OF_HOST_MEMORY": OutOfHostMemoryError,
    "RMM_ERR_CUDA": CudaError,
    "RMM_ERR_NO_DEVICE": NoDeviceError,
    "RMM_ERR_UNSUPPORTED": UnsupportedError,
    "RMM_ERR_IO": FileError,
    "RMM_ERR_INVALID_ALIGNMENT": InvalidAlignmentError,
    "RMM_ERR_ASLEEP": AsleepError,
    "RMM_ERR_IN_USE": InUseError,
}


def by_status(statuses: Dict[str, int]) -> Dict[int, Type[RMMError]]:
    """The exception of each failure status, by its number."""
    return {
        number: _BY_NAME.get(name, RMMError) for name, number in statuses.items() if number != 0
    }


@contextmanager
def also_saying(text: str, when: bool = True) -> Iterator[None]:
    """RMM's words behind those of the library, in a refusal that programs know by them."""
    try:
        yield
    except (InvalidArgumentError, OutOfRangeError, UnsupportedError) as error:
        if not when:
            raise
        raise type(error)(error.errcode, f"{error}: {text}") from None
