"""Allocation of arrays in local memories, in the order of their declaration.

The addresses are those of the C API's compiler (C API general notes, allocation by arrays).

An array is one-dimensional, of a length known when the kernel is compiled. Arrays of one memory lie
one behind another from address 0 on, each aligned for any instruction; nothing is ever given back.
"""

import sys
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import index
from types import FrameType, FunctionType
from typing import Any

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import RequestError, refuse, unable
from cubecore.frontends.capi.length_origins import learned_length
from cubecore.frontends.capi.pointer import MemoryReader, Pointer, RuntimeInt, type_of
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.check import memory_bytes
from cubecore.machine.execute.array_bounds import InArray
from cubecore.machine.memory.local_arrays import LocalArrays
from cubecore.units import align_up

SPACES: dict[str, Mem] = {
    "ubuf": Mem.UB,
    "cbuf": Mem.L1,
    "ca": Mem.L0A,
    "cb": Mem.L0B,
    "cc": Mem.L0C,
    "biasbuf": Mem.BT,
    "fbuf": Mem.FB,
}
"""The C API's address spaces, without their underscores."""
_ARRAY_ARCHS = ("2201", "3510")
"""Architectures with arrays: 910B and 910C (C API general notes), and 950, whose own pages declare
them in their examples."""
_ALIGN_BYTES = {Mem.UB: 32, Mem.L1: 32, Mem.L0A: 512, Mem.L0B: 512, Mem.L0C: 1024}
"""The alignment that every instruction of the memory takes; BiasTable and Fixpipe buffer: 128 B."""


_CONSTANT = (
    "make it a constant of the module, or of a function that makes the kernel, at its largest value"
)
"""The remedy for a length that a kernel learns while it runs."""
_METHODS = (FunctionType, property, classmethod, staticmethod)


class Struct:
    """Base of a user's struct of arrays: ``src = ("float", 1024)`` declares ``float src[1024]``.

    A memory takes an instance (``core.ubuf(Buffers())``) and returns one with a pointer for each
    array. Structs may inherit; their methods and properties are kept.
    """

    @classmethod
    def arrays(cls) -> dict[str, Any]:
        """Return the declarations of the class in order, inherited ones first.

        Returns
        -------
        dict
            The declared type and extents of each array by its name.

        Examples
        --------
        >>> class Buffers(cubecore.Struct):
        ...     left = ("half", 128)
        >>> Buffers.arrays()
        {'left': ('half', 128)}
        """
        bases = [base for base in reversed(cls.__mro__) if base not in (Struct, object)]
        declared = {n: v for base in bases for n, v in vars(base).items()}
        return {
            name: value
            for name, value in declared.items()
            if not name.startswith("_") and not isinstance(value, _METHODS)
        }


@dataclass(frozen=True, eq=False)
class LocalMemory:
    """One local memory of a core: call it to declare an array or a struct in it.

    `mixed` is told when arrays and physical addresses are used in one memory. Arrays never share
    bytes, which `arrays` says: all of the memory is as one; of addresses nothing is known.
    """

    mem: Mem
    chip: Chip
    reader: MemoryReader
    mixed: Callable[[str], None]
    arrays: LocalArrays

    def __post_init__(self) -> None:
        object.__setattr__(self, "_used", 0)
        object.__setattr__(self, "_used_by_means", set())

    @cached_property
    def _usable(self) -> int:
        """The bytes that arrays may fill; in a loop they are asked for again and again."""
        _, usable = memory_bytes(self.chip, self.mem)
        return usable

    def __call__(self, what: str | ElementType | Struct | type, *length: object) -> Any:
        """Declare an array of a local memory, ``type name[length]``, or a struct of arrays.

        Parameters
        ----------
        what : str or ElementType or Struct
            The element type, or an instance of a struct.
        *length : int
            The number of elements, known before the kernel runs (C API general notes).

        Returns
        -------
        Pointer or Struct
            The array's first element, or the struct with a pointer for each array.

        Raises
        ------
        RequestError
            If the compiler does not accept the declaration (C API general notes), or it exceeds the
            memory.
        """
        if self.chip.arch not in _ARRAY_ARCHS:
            raise refuse("an array in a local memory", "be on a 910B, 910C or 950", self.chip.name)
        self._used_by("array")
        if not any(isinstance(each, RuntimeInt) for each in length):
            _require_constant(sys._getframe(1), length)  # noqa: SLF001 - the call's source
        # The usual case, by far: all but the address is known from an earlier declaration.
        if what.__class__ is str and len(length) == 1 and length[0].__class__ is int:
            return self._placed(*_extent(what, length[0]))
        if isinstance(what, type) and issubclass(what, Struct):
            raise unable(
                what.__name__,
                f"{what.__name__} is a struct type; declare an object of it",
                f"write {what.__name__}()",
            )
        if isinstance(what, Struct):
            return self._struct(what, length)
        return self._array(type_of(what, f"an array in {self.mem.label}"), length)

    def at(self, dtype: str | ElementType, address: int) -> Pointer:
        """Return a pointer to a physical address of this memory (asc_get_phy_buf_addr).

        Parameters
        ----------
        dtype : str or ElementType
            The element type.
        address : int
            The address, bytes.

        Returns
        -------
        Pointer
            The pointer. Arrays start at address 0, so that both in one memory are a finding.

        Raises
        ------
        RequestError
            If the type is not an element type, or the address is not an integer.
        """
        kind = type_of(dtype, f"a pointer into {self.mem.label}")
        try:
            checked = index(address)
        except TypeError:
            got = repr(address)
            raise refuse(f"an address in {self.mem.label}", "be a whole number", got) from None
        self._used_by("address")
        return Pointer(self.mem, kind, checked, self.reader)

    def _used_by(self, means: str) -> None:
        used: set[str] = self._used_by_means  # type: ignore[attr-defined]
        if means not in used:
            used.add(means)
            # An array's bytes are only its own; with addresses anything may be anywhere in the
            # memory.
            if means == "array":
                self.arrays.declare(self.mem, 0, self._usable)
            else:
                self.arrays.by_addresses = True
            if len(used) > 1:
                self.mixed(
                    f"{self.mem.label} must be used by arrays or by asc_get_phy_buf_addr, got both;"
                    " arrays lie from address 0 on, so that both may be the same bytes"
                )

    def _struct(self, struct: Struct, length: tuple[object, ...]) -> Struct:
        name = type(struct).__name__
        if length:
            spelled = "".join(f"[{n}]" for n in length)
            raise refuse("an array", "not hold structs that hold arrays", f"{name}{spelled}")
        arrays = copy(struct)  # the author's may be of another core, too
        for field, declared in type(struct).arrays().items():
            if not isinstance(declared, tuple) or not declared:
                plain = isinstance(declared, (str, int, list, tuple))
                got = (
                    repr(declared)
                    if plain
                    else getattr(declared, "__name__", type(declared).__name__)
                )
                remedy = 'declare it as ("float", 1024)' if plain else ""
                raise refuse(f"{name}.{field}", "be an array of numbers", got, remedy)
            kind, *extents = declared
            setattr(arrays, field, self._array(type_of(kind, f"{name}.{field}"), tuple(extents)))
        return arrays

    def _array(self, kind: ElementType, length: tuple[object, ...]) -> Pointer:
        return self._placed(kind, _size(kind, _length(kind, length)))

    def _placed(self, kind: ElementType, size: int) -> Pointer:
        """Return the next array, of so many bytes."""
        unit = _ALIGN_BYTES.get(self.mem, 128)
        start = align_up(self._used, unit)  # type: ignore[attr-defined]
        end, usable = start + size, self._usable
        if end > usable:
            raise refuse(f"arrays in {self.mem.label}", f"fit {usable} B", f"{end} B")
        object.__setattr__(self, "_used", end)
        # The gap up to the next array is the array's: an instruction moves whole blocks, and may
        # write there what is never read.
        padded = InArray(start, start, align_up(end, unit))
        return Pointer(self.mem, kind, padded, self.reader)


@lru_cache(maxsize=4096)
def _extent(name: str, count: int) -> tuple[ElementType, int]:
    """Return an element type by its name, and the bytes of an array."""
    kind = element_type(name)
    return kind, _size(kind, _length(kind, (count,)))


def _size(kind: ElementType, count: int) -> int:
    return -(-count * kind.bits // 8)


def _length(kind: ElementType, length: tuple[object, ...]) -> int:
    if len(length) != 1 or isinstance(length[0], (tuple, list)):
        spelled = "".join(f"[{n}]" for n in length) or "none"
        raise refuse(f"an array of {kind}", "have one length", spelled)
    (count,) = length
    if isinstance(count, RuntimeInt):
        raise _learned(f"{int(count)} from {count.origin}")
    if isinstance(count, bool) or not hasattr(count, "__index__") or int(count) < 1:
        raise refuse("an array's length", "be a whole number above 0", repr(count))
    return int(count)


def _require_constant(frame: FrameType, length: tuple[object, ...]) -> None:
    """Refuse a declaration whose length a plain integer was made for while the kernel ran."""
    origin = learned_length(frame)
    if origin is not None:
        raise _learned(f"{', '.join(map(str, length)) or 'that of a struct'} from {origin}")


def _learned(got: str) -> RequestError:
    """Return the refusal of a length that a kernel learns while it runs."""
    need = "be known when the kernel is compiled"
    return refuse("an array's length", need, got, _CONSTANT)
