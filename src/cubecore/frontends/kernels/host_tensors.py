"""A kernel's tensors on the host: NumPy, ml_dtypes, DLPack and torch arrays, as bytes."""

import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import CubecoreError, RequestError, refuse

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False, slots=True)
class HostTensor:
    """A tensor that a kernel is launched with; `raw` is a view of the user's bytes in C order."""

    name: str
    raw: Bytes
    dtype: ElementType
    shape: tuple[int, ...]

    @property
    def at(self) -> tuple[int, int]:
        """Return the address and the size of its bytes in the host's memory."""
        return self.raw.ctypes.data, self.raw.size


def host_tensor(name: str, given: object, wanted: ElementType | None = None) -> HostTensor | None:
    """Return the tensor that an argument is, or None for a number that is passed by value.

    Raises
    ------
    RequestError
        If the array cannot be a tensor of the chip: its type, its order, its address.
    """
    if given is None or isinstance(given, (bool, int, float, str, bytes, np.generic)):
        return None
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.Tensor):
        kind, array = _torch(name, given, torch)
    else:
        array = _numpy(name, given)
        kind = _element(name, array.dtype)
    if wanted is not None and kind is not wanted:
        raise refuse(name, f"be of {wanted}", kind.name)
    if not array.flags.c_contiguous:
        raise _scattered(name, array.strides, array.shape, "np.ascontiguousarray of it")
    return HostTensor(name, array.reshape(-1).view(np.uint8), kind, array.shape)


def _numpy(name: str, given: object) -> Array:
    """Return a NumPy view of the user's memory."""
    masked = sys.modules.get("numpy.ma")  # who has such an array has imported it
    if masked is not None and isinstance(given, masked.MaskedArray):
        raise refuse(name, "be an array without a mask", "a masked array", "pass filled() of it")
    if isinstance(given, np.ndarray):
        return np.asarray(given)
    if not hasattr(given, "__dlpack__"):
        need = "be a NumPy, DLPack or torch array, or a number"
        raise refuse(name, need, type(given).__name__)
    try:
        array: Array = np.from_dlpack(given)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise refuse(name, "be an array that NumPy can view", str(error)) from None
    return array


def _torch(name: str, given: Any, torch: Any) -> tuple[ElementType, Array]:
    """Return the type and the bytes' view of a torch tensor; NumPy does not know bfloat16."""
    if given.device.type != "cpu":
        raise refuse(name, "be on the CPU", f"a tensor on {given.device}")
    kind, plain = _element(name, given.dtype), given.detach()
    if not plain.is_contiguous():
        strides = tuple(n * plain.element_size() for n in plain.stride())
        raise _scattered(name, strides, tuple(plain.shape), "its contiguous()")
    same_width = {8: torch.uint8, 16: torch.int16, 32: torch.int32, 64: torch.int64}
    return kind, plain.view(same_width[kind.bits]).numpy()


def _scattered(
    name: str, strides: tuple[int, ...], shape: tuple[int, ...], remedy: str
) -> RequestError:
    got = f"strides of {strides} B for shape {shape}"
    return refuse(name, "be contiguous, its last axis innermost", got, f"pass {remedy}")


def _element(name: str, dtype: object) -> ElementType:
    text = str(dtype).removeprefix("torch.")
    try:
        kind = element_type(text)
    except CubecoreError:
        wide = f"convert it first, as with {name}.astype(np.float32)" if text == "float64" else ""
        raise refuse(name, "be of a type that the chip has", text, wide) from None
    if kind.bits < 8:
        need = "be of 8 bits or more"
        raise refuse(name, need, text, "pack two to a byte in a uint8 array, and cast the pointer")
    return kind


def write_back(left: Iterable[tuple[HostTensor, Bytes]]) -> tuple[str, ...]:
    """Give the user's arrays the bytes that the kernel left: all of them, or none.

    Return the names of those that it changed.

    Raises
    ------
    RequestError
        If the kernel changed the bytes of a read-only array.
    """
    changed = []
    for tensor, data in left:
        if np.array_equal(tensor.raw, data):
            continue
        changed.append((tensor, data))
        if not tensor.raw.flags.writeable:
            raise refuse(tensor.name, "be writable", "a read-only array that the kernel writes")
    with unbroken():
        for tensor, data in changed:
            tensor.raw[:] = data
    return tuple(tensor.name for tensor, _ in changed)


@contextmanager
def unbroken() -> Iterator[None]:
    """Hold a Ctrl-C back until the block has ended; only the main thread receives one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, Any]] = []
    before = signal.signal(signal.SIGINT, lambda *arguments: held.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
        if held and callable(before):
            before(*held[0])
