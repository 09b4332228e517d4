"""Tensors: typed views of buffers, indexed as TIK does."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NoReturn

from cubecore.dtypes import ElementType, element_type
from cubecore.frontends.tik.trace.buffers import TensorBuffer
from cubecore.frontends.tik.trace.errors import refuse, unable
from cubecore.frontends.tik.trace.values import TikValue, Value, integer
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.expr import Expr

Extent = int | Value


class Tensor:
    """A view: a buffer, an element type, a start in elements and a shape.

    One index, or one slice, counts elements of the flattened tensor and never rows; one index or
    slice for each dimension keeps the rank. One index into a view of several dimensions counts from
    the start of the tensor that it is a view of: public programs add the view's `offset`
    themselves. As an operand a view is a start address. An element (`begins`) is one too: what is
    cut off it, or off it as another type, counts from there on, as public programs do.
    """

    def __init__(
        self,
        buffer: TensorBuffer,
        dtype: ElementType,
        shape: Sequence[Extent],
        scope: str,
        store: Callable[["Tensor", object], None],
        *,
        start: Expr | None = None,
        strides: Sequence[Extent] | None = None,
        element: bool = False,
        begins: bool = False,
        load: Callable[["Tensor"], Value] | None = None,
        root: "Tensor | None" = None,
    ) -> None:
        self.buffer, self.record, self.scope = buffer, dtype, scope
        self.shape: tuple[Extent, ...] = tuple(shape)
        self.start = Expr(0) if start is None else start
        self._store, self._element, self._load = store, element, load
        self._begins = begins or element
        self._address: Expr | None = None
        self._strides = tuple(_strides(self.shape) if strides is None else strides)
        self._root = root

    @property
    def _base(self) -> "Tensor":
        """The tensor that it is a view of by one index for each dimension, or itself."""
        return self if self._root is None else self._root

    @property
    def dtype(self) -> str:
        """The element type's name."""
        return self.record.name

    @property
    def name(self) -> str:
        """The name that the tensor was declared with."""
        return self.buffer.name

    @property
    def mem(self) -> Mem:
        """The memory it lies in."""
        return self.buffer.mem

    @property
    def offset(self) -> Extent:
        """Return the offset of the view in its tensor, elements."""
        return Value(self.start) if self.start.constant is None else self.start.constant

    @property
    def size(self) -> Extent:
        """Elements."""
        return prod(self.shape, start=1)

    @property
    def buffer_size(self) -> Extent:
        """Bytes."""
        return self.size * self.record.size_bytes

    @property
    def address(self) -> Expr:
        """Return the address of the view in its memory, bytes.

        Raises
        ------
        RequestError
            If its scope has ended.
        """
        if not self.buffer.alive:
            raise unable(self.name, f"tensor {self.name} is used after the end of its scope")
        if self._address is None:
            self._address = self.buffer.base + self.start * self.record.size_bytes
        return self._address

    @property
    def contiguous(self) -> bool:
        """True if its elements lie one behind another, as far as the program knows."""
        plain = _strides(self.shape)
        return all(
            isinstance(extent, int) and (extent == 1 or mine == theirs)
            for extent, mine, theirs in zip(self.shape, self._strides, plain, strict=True)
        )

    def loaded(self) -> Value:
        """Return the first element as a Scalar that holds what it is now."""
        assert self._load is not None, "our own tensors are not read"
        return self._load(self)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        """Compare an element's value with a number; two tensors are equal where they are one."""
        if self._compares(other):
            return self.loaded() == other
        return self is other

    def __ne__(self, other: object) -> Any:
        if self._compares(other):
            return self.loaded() != other
        return self is not other

    def _compares(self, other: object) -> bool:
        if isinstance(other, Tensor):
            return self._element and other._element  # noqa: SLF001 - of this class
        return isinstance(other, (int, float, Value))

    def __gt__(self, other: TikValue) -> Value:
        return self.loaded().__gt__(other)

    def __ge__(self, other: TikValue) -> Value:
        return self.loaded().__ge__(other)

    def __lt__(self, other: TikValue) -> Value:
        return self.loaded().__lt__(other)

    def __le__(self, other: TikValue) -> Value:
        return self.loaded().__le__(other)

    def set_as(self, value: object) -> None:
        """Write the first element."""
        self._store(self, value)

    def __setitem__(self, key: Any, value: object) -> None:
        self[key].set_as(value)

    def __iter__(self) -> NoReturn:
        raise unable(self.name, f"tensor {self.name} cannot be iterated", "index its elements")

    def __getitem__(self, key: Any) -> "Tensor":
        if self._element and isinstance(key, int) and key and self.start.constant is not None:
            raise unable(self.name, f"an element of {self.name} cannot be indexed")
        key = tuple(key) if isinstance(key, list) else key
        if isinstance(key, tuple) and len(key) == 1:
            key = key[0]
        # One index or slice counts flat elements; of a view of several dimensions from the start of
        # the tensor that it is cut from. A tuple goes dimension by dimension: start += first *
        # stride.
        if not isinstance(key, tuple):
            base = self if len(self.shape) < 2 else self._base
            first, length = self._cut(key, base.size)
            whole = isinstance(key, slice)
            return self._view(base.start + first, (length,), (1,), element=not whole)
        if len(key) != len(self.shape):
            need = f"have one index or one for each of the {len(self.shape)} dimensions"
            raise refuse(f"the index of {self.name}", need, len(key))
        start, shape = Expr(0), []
        for part, extent, stride in zip(key, self.shape, self._strides, strict=True):
            first, length = self._cut(part, extent)
            start = start + first * integer(stride, "a stride")
            shape.append(length)
        return self._view(self.start + start, shape, self._strides, root=self._base)

    def _view(
        self,
        start: Expr,
        shape: Sequence[Extent],
        strides: Sequence[Extent],
        *,
        element: bool = False,
        root: "Tensor | None" = None,
    ) -> "Tensor":
        return Tensor(
            self.buffer,
            self.record,
            shape,
            self.scope,
            self._store,
            start=start,
            strides=strides,
            element=element,
            load=self._load,
            root=root,
        )

    def _cut(self, part: TikValue, extent: Extent) -> tuple[Expr, Extent]:
        """Return where an index or a slice starts and how long it is."""
        subject = f"an index of {self.name}"
        if isinstance(part, slice):
            if part.step not in (None, 1):
                raise refuse(f"a slice of {self.name}", "have step 1", part.step)
            # Cut off an element: TIK programs give a start address only and no length.
            if self._begins and part.stop is None:
                return integer(part.start or 0, subject), 1
            first = _from_end(0 if part.start is None else part.start, extent)
            stop = _from_end(extent if part.stop is None else part.stop, extent)
            constant = isinstance(first, int) and isinstance(stop, int)
            if constant and stop <= first and not self.buffer.unreached:
                raise refuse(f"a slice of {self.name}", "stop after its start", f"{first}:{stop}")
            return integer(first, subject), _as_constant(stop - first)
        index = _from_end(part, extent)
        late = isinstance(index, Value) or self.start.constant is None
        if self._begins and (late or not self._element):
            return integer(part, subject), 1
        constant = isinstance(index, int) and isinstance(extent, int) and not self.buffer.unreached
        if constant and not 0 <= index < extent:
            raise refuse(subject, f"be in [{-extent}, {extent})", part)
        return integer(index, subject), 1

    def reshape(self, *shape: Any) -> "Tensor":
        """Return the same elements in another shape."""
        new = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        old_count, count = self.size, prod(new, start=1)
        if isinstance(old_count, int) and isinstance(count, int) and old_count != count:
            raise refuse(f"{self.name}.reshape", f"keep {old_count} elements", count)
        return self._view(self.start, new, _strides(new))

    def flatten(self) -> "Tensor":
        """Return the same elements in one dimension."""
        return self.reshape((self.size,))

    def reinterpret_cast_to(self, dtype: str) -> "Tensor":
        """Return the same bytes as another type, the last dimension rescaled."""
        new = element_type(dtype, f"{self.name}.reinterpret_cast_to")
        old_bytes, new_bytes = self.record.size_bytes, new.size_bytes
        *outer, last = self.shape
        if isinstance(last, int) and last * old_bytes % new_bytes:
            need = f"have a last dimension of whole {new}"
            raise refuse(f"{self.name}.reinterpret_cast_to", need, f"{last} x {self.record}")
        # The start must stay affine where possible, so that later passes can reason about
        # addresses: a start of whole old elements is multiplied, not divided, if the new type is
        # narrower.
        shape = (*outer, last * old_bytes // new_bytes)
        start = self.start * old_bytes
        start = start // new_bytes if new_bytes > 1 else start
        if self.start.constant is None and old_bytes >= new_bytes:
            start = self.start * (old_bytes // new_bytes)
        return Tensor(
            self.buffer,
            new,
            shape,
            self.scope,
            self._store,
            start=start,
            begins=self._begins,
            load=self._load,
        )


def _strides(shape: Sequence[Extent]) -> tuple[Extent, ...]:
    return tuple(prod(shape[i + 1 :], start=1) for i in range(len(shape)))


def _as_constant(extent: Extent) -> Extent:
    """Return an expression that is a constant as the number it is."""
    if isinstance(extent, Value) and not extent.is_float and extent.expr.constant is not None:
        return extent.expr.constant
    return extent


def _from_end(index: TikValue, extent: Extent) -> TikValue:
    if isinstance(index, float) and index.is_integer():
        index = int(index)
    if isinstance(index, int) and not isinstance(index, bool) and index < 0:
        return index + extent
    return index
