"""Output of a kernel: lines, matrices of memory, lanes of registers."""

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING

from cubecore.errors import CubecoreError, refuse
from cubecore.frontends.capi.pointer import Pointer
from cubecore.frontends.capi.printf import formatted, shape_of
from cubecore.frontends.capi.registers.handles import Register, VectorRegister
from cubecore.frontends.source_locations import KernelError
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.tree import Location
from cubecore.machine.debug.matrix_view import MatrixView, view
from cubecore.machine.execute.core import Core

if TYPE_CHECKING:
    from cubecore.frontends.capi.calls.issues import Issues
    from cubecore.frontends.capi.registers.vector_functions import RegisterCalls


class CoreOutput:
    """The part of a core's handle that prints."""

    _core: Core
    _issues: "Issues"
    _location: Callable[..., Location]

    @property
    def registers(self) -> "RegisterCalls":
        """The calls on registers."""
        raise NotImplementedError

    def show(self, text: str) -> None:
        """Print a line with the core's name in front.

        Parameters
        ----------
        text : str
            The line, without a line feed.
        """
        sys.stdout.write(f"{self._core.id}: {text}\n")

    def dump(
        self,
        tensor: Pointer | VectorRegister,
        shape: int | Sequence[int],
        layout: str | None = None,
        name: str = "",
    ) -> MatrixView:
        """Print the contents of memory at `tensor` as a matrix, and return it.

        Uninitialised elements are marked. A dump is not an access: no check sees it. In an order
        other than the program's it shows the contents when the scalar unit reaches it. Of a vector
        register it shows the first lanes, as the calls so far leave them.

        Parameters
        ----------
        tensor : Pointer or VectorRegister
            The first byte, or a register; its type is the elements'.
        shape : int or sequence of int
            Elements along each axis.
        layout : str or None
            ND, NZ, ZZ or ZN; the memory's own unless given: ZZ in L0A, ZN in L0B, NZ in L0C,
            else ND.
        name : str
            A title for the printed matrix.

        Returns
        -------
        MatrixView
            The elements, and the mask of those that were written.

        Raises
        ------
        KernelError
            If the bytes lie outside the memory or tensor, or the layout or shape is malformed.
        """
        return self._dump(tensor, shape_of(shape), layout, name, sys._getframe(1))  # noqa: SLF001

    def printf(self, text: str, *values: object) -> None:
        """Print a line as C's printf formats it, with the core's name in front.

        Parameters
        ----------
        text : str
            The format; its conversions are d i u x f e g s c p.
        *values : object
            A value for each conversion.

        Raises
        ------
        KernelError
            If the conversions and the values do not match.
        """
        where = self._location(sys._getframe(1))  # noqa: SLF001
        self._issues.one(where)
        try:
            self.show(formatted(text, values).rstrip("\n"))
        except CubecoreError as error:
            raise KernelError.at(where, error) from None

    def _dumper(self, mem: Mem | None) -> Callable[[Pointer | VectorRegister, int, int], None]:
        """Return the C API's dump: `desc` is a number of the author's, `dump_size` in elements."""

        def dump(tensor: Pointer | VectorRegister, desc: int, dump_size: int) -> None:
            frame = sys._getframe(1)  # noqa: SLF001
            if mem is not None and getattr(tensor, "mem", None) is not mem:
                wrong = refuse("asc_dump", f"be given a pointer into {mem.label}", str(tensor))
                raise KernelError.at(self._location(frame), wrong)
            self._dump(tensor, (int(dump_size),), "ND", f"desc {int(desc)}", frame)

        return dump

    def _dump(
        self,
        tensor: Pointer | VectorRegister,
        shape: tuple[int, ...],
        layout: str | None,
        name: str,
        frame: FrameType,
    ) -> MatrixView:
        where, core = self._location(frame), self._core
        self._issues.one(where)
        core.flush()
        try:
            if isinstance(tensor, Register):
                matrix = self.registers.shown(tensor, shape)
            else:
                matrix = view(core, tensor.mem, tensor.address, tensor.dtype, shape, layout)
        except CubecoreError as error:
            raise KernelError.at(where, error) from None
        self.show(f"{name + ' ' if name else ''}at {where}: {matrix}")
        return matrix
