"""Values of a kernel: pointers into memories, and integers that only the chip knows."""

from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self

from cubecore.dtypes import ElementType, element_type
from cubecore.errors import refuse
from cubecore.isa.declare.instruction import Mem
from cubecore.machine.execute.array_bounds import moved

if TYPE_CHECKING:
    from collections.abc import Callable


class RuntimeInt(int):
    """An integer that the kernel learns while it runs; `origin` says from where.

    It computes as any integer does, and what is computed from it is one too. An array's length must
    not be one (C API general notes).
    """

    origin: str

    def __new__(cls, value: int, origin: str) -> Self:
        """Return the integer with its origin."""
        number = int.__new__(cls, value)
        number.origin = origin
        return number


_plain, _times = int.__new__, int.__mul__


def _spreading(name: str) -> "Callable[..., Any]":
    """Return a method of two integers that keeps the origin."""
    method = getattr(int, name)

    def compute(self: RuntimeInt, other: object) -> Any:
        result = method(self, other)
        if result.__class__ is not int:
            return result
        number = _plain(RuntimeInt, result)
        number.origin = self.origin
        return number

    return compute


def _keeping(name: str) -> "Callable[..., Any]":
    """Return a method of other numbers of integers that keeps the origin."""
    method = getattr(int, name)

    def compute(self: RuntimeInt, *others: object) -> Any:
        result = method(self, *others)
        return RuntimeInt(result, self.origin) if result.__class__ is int else result

    return compute


for _name in (
    *("add", "sub", "mul", "floordiv", "mod", "lshift", "rshift", "and", "or", "xor"),
    *("radd", "rsub", "rmul", "rfloordiv", "rmod", "rlshift", "rrshift", "rand", "ror", "rxor"),
):
    setattr(RuntimeInt, f"__{_name}__", _spreading(f"__{_name}__"))
for _name in ("pow", "neg", "pos", "abs", "invert"):
    setattr(RuntimeInt, f"__{_name}__", _keeping(f"__{_name}__"))


class MemoryReader(Protocol):
    """The protocol of an object that reads a value from memory for a pointer."""

    def load(self, pointer: "Pointer") -> Any:
        """Return the element that the pointer points to."""
        ...


@dataclass(slots=True, unsafe_hash=True)  # never changed; frozen ones take twice as long to make
class Pointer:
    """An address in a memory and an element type; arithmetic counts elements, as in C.

    ``p + n``, ``p - n`` and ``p[n:]`` point `n` elements further on or back; ``p[n]`` is the value
    there, read by the scalar unit. Of 4-bit types `n` is even. Nothing is checked before an
    instruction uses the address.

    Attributes
    ----------
    mem : Mem
        The memory.
    dtype : ElementType
        The type of the elements.
    address : int
        The address in the memory, bytes.
    reader : MemoryReader
        The core that reads values for ``p[n]``.
    """

    mem: Mem
    dtype: ElementType
    address: int
    reader: MemoryReader

    def __add__(self, elements: int) -> "Pointer":
        if elements.__class__ is not int and elements.__class__ is not RuntimeInt:
            return self._moved(elements)
        dtype = self.dtype
        bits = _times(elements, dtype.bits)
        if bits & 7:
            return self._moved(elements)
        address = self.address
        far = address + (bits >> 3) if address.__class__ is int else moved(address, bits >> 3)
        return Pointer(self.mem, dtype, far, self.reader)

    def __sub__(self, elements: int) -> "Pointer":
        return self._moved(elements, -1)

    def _moved(self, elements: int, sign: int = 1) -> "Pointer":
        try:
            bits = sign * index(elements) * self.dtype.bits
        except TypeError:
            subject = f"a distance in {self.dtype}"
            raise refuse(subject, "be a whole number of elements", repr(elements)) from None
        if bits % 8:
            raise refuse(f"a distance in {self.dtype}", "be even", int(elements))
        return Pointer(self.mem, self.dtype, moved(self.address, bits // 8), self.reader)

    def __getitem__(self, key: int | slice) -> Any:
        """Return the value at an index, or for ``[n:]`` the pointer there.

        Raises
        ------
        RequestError
            If a slice has an end or a step: a pointer has no extent.
        """
        if isinstance(key, slice):
            if key.stop is not None or key.step is not None:
                raise refuse("a pointer's slice", "be of the form p[n:]", _spelled(key))
            return self._moved(key.start or 0)
        return self.reader.load(self._moved(key))

    __iter__ = None  # a pointer has no end

    def __setitem__(self, key: object, value: object) -> NoReturn:
        """Refuse to store a value: the scalar unit reads only.

        Raises
        ------
        RequestError
            Always: only instructions store.
        """
        remedy = "asc_duplicate and a copy, say"
        raise refuse("a pointer's element", "be stored by an instruction", "an assignment", remedy)

    def cast(self, dtype: str | ElementType) -> "Pointer":
        """Return a pointer to the same bytes as another type.

        Parameters
        ----------
        dtype : str or ElementType
            The element type, such as "half" or "int8".

        Returns
        -------
        Pointer
            The pointer, at the same address.

        Raises
        ------
        RequestError
            If the type is not an element type.
        """
        return Pointer(self.mem, type_of(dtype, "a pointer"), self.address, self.reader)

    def __str__(self) -> str:
        """Return ``float16* 64 in UB``."""
        return f"{self.dtype}* {self.address} in {self.mem.label}"

    __repr__ = __str__


def type_of(given: object, subject: str) -> ElementType:
    """Return the element type that a kernel names, by its name or itself.

    Raises
    ------
    RequestError
        If it is not an element type.
    """
    if isinstance(given, ElementType):
        return given
    if isinstance(given, str):
        return element_type(given)
    got = "an array" if isinstance(given, Pointer) else getattr(given, "__name__", repr(given))
    raise refuse(subject, "be of an element type", got)


def _spelled(key: slice) -> str:
    ends = "".join("" if x is None else str(x) for x in (key.start,))
    step = "" if key.step is None else f":{key.step}"
    return f"p[{ends}:{'' if key.stop is None else key.stop}{step}]"


def pointers_among(arguments: tuple[object, ...]) -> list[Pointer]:
    """Return the pointers among the arguments of a call, those of its arrays too."""
    pointers: list[Pointer] = []
    for argument in arguments:
        if isinstance(argument, Pointer):
            pointers.append(argument)
        elif isinstance(argument, (list, tuple)):
            pointers.extend(p for p in argument if isinstance(p, Pointer))
    return pointers
