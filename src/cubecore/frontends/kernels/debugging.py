"""Debugging a launch from Python: `debug` returns one that stays stopped until it is resumed."""

from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context
from types import TracebackType
from typing import Any, Self

from greenlet import getcurrent, greenlet

from cubecore.aliases import Json
from cubecore.dtypes import element_type
from cubecore.errors import refuse, unable
from cubecore.frontends.capi.pointer import Pointer
from cubecore.frontends.capi.printf import shape_of
from cubecore.frontends.kernels.kernel import Kernel, launch
from cubecore.frontends.kernels.session import KernelRun, ScriptSession, current_session
from cubecore.frontends.source_locations import kernel_frame
from cubecore.isa.declare.instruction import Mem
from cubecore.machine.debug.breakpoints import MEMORIES, Break, Range, Stop, evaluated
from cubecore.machine.debug.debugger import LaunchDebugger
from cubecore.machine.debug.matrix_view import MatrixView, view


class _ClosedError(BaseException):
    """Ends a launch whose debugging is over; no kernel catches it."""


class Debugging:
    """A launch that stops on request; nothing of it runs before `run` or `step`.

    Its life: 1. breakpoints and watches are set; 2. `run` or `step` goes on to the next `Stop`, at
    which `dump` and `evaluate` work; 3. at the end they return None, `result` is the launch's, and
    the arrays are written. As a context it closes itself.

    Attributes
    ----------
    stop : Stop or None
        The point at which the launch stands; None before its start and after its end.
    result : KernelRun or None
        The launch's result, after its end.
    """

    def __init__(
        self,
        kernel: Kernel,
        blocks: int,
        arguments: tuple[object, ...],
        words: Json,
    ) -> None:
        self.stop: Stop | None = None
        """The point at which the launch stands; None before it starts and after its end."""
        self.result: KernelRun | None = None
        """The launch's result, after its end."""
        self._user = getcurrent()
        self._stands: greenlet | None = greenlet(
            lambda: self._launch(kernel, blocks, arguments, words)
        )
        self._stands.gr_context = copy_context()
        self._debugger = LaunchDebugger(self._stopped, kernel_frame)

    # --- where to stop

    def break_at(self, where: str) -> Break:
        """Stop before instructions.

        Parameters
        ----------
        where : str
            An instruction in any dialect's spelling, ``#N`` (the Nth of a core) or ``FILE:LINE``.
            With ``... if EXPRESSION`` only where that holds; it may name the kernel's variables,
            the instruction's parameters and operands (addresses), and ``number``.

        Returns
        -------
        Break
            The breakpoint.

        Raises
        ------
        RequestError
            If no instruction has that name, or the number is below 1.
        """
        breakpoint_at = Break.of(where)
        self._debugger.breaks.append(breakpoint_at)
        return breakpoint_at

    def watch(self, where: str) -> Range:
        """Stop behind instructions that access certain bytes.

        Parameters
        ----------
        where : str
            ``UB:0x100+64``: 64 B of a memory; ``c:0+64`` of a tensor. ``/r`` or ``/w`` behind it
            stops at reads or writes alone.

        Returns
        -------
        Range
            The watch.

        Raises
        ------
        RequestError
            If the text does not have this form.
        """
        watched = Range.of(where)
        self._debugger.watches.append(watched)
        return watched

    def clear(self) -> None:
        """Remove every breakpoint and watch."""
        self._debugger.breaks.clear()
        self._debugger.watches.clear()

    # --- going on

    def run(self) -> Stop | None:
        """Go on to the next breakpoint or watch, or to the end.

        Returns
        -------
        Stop or None
            The point at which the launch stands; None at its end.

        Raises
        ------
        KernelError
            If the kernel fails.
        RequestError
            If the launch has ended or is closed, or a condition is not an expression.
        """
        return self._go(None)

    def step(self, count: int = 1) -> Stop | None:
        """Go on by some instructions, or to a breakpoint or watch before.

        Parameters
        ----------
        count : int
            Instructions of any core to go on by; 1 if it is less.

        Returns
        -------
        Stop or None
            The point at which the launch stands; None at its end.

        Raises
        ------
        KernelError
            If the kernel fails.
        RequestError
            If the launch has ended or is closed, or a condition is not an expression.
        """
        return self._go(max(int(count), 1))

    def close(self) -> None:
        """End the launch; its arrays are left as they were."""
        stands, self._stands = self._stands, None
        if stands is not None and self.stop is not None:
            self._user = getcurrent()
            with suppress(_ClosedError):
                stands.throw(_ClosedError)
        self.stop = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- looking

    def dump(
        self,
        where: Pointer | str,
        shape: int | Sequence[int],
        layout: str | None = None,
        dtype: str | None = None,
    ) -> MatrixView:
        """Return the contents of memory at the stop, as a matrix.

        Parameters
        ----------
        where : Pointer or str
            A pointer, the name of a kernel's variable that is one, or with `dtype` an address:
            ``UB:0x100``, or ``c:0`` in a tensor.
        shape : int or sequence of int
            Elements along each axis.
        layout : str or None
            ND, NZ, ZZ or ZN; the memory's own unless given.
        dtype : str or None
            The elements' type; the pointer's unless given.

        Returns
        -------
        MatrixView
            The elements, and the mask of those that were written.

        Raises
        ------
        RequestError
            If the launch is not stopped, the bytes lie outside, or the name is unknown.
        """
        return look(self._where(), self._debugger, where, shape_of(shape), layout, dtype)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression at the stop.

        Parameters
        ----------
        expression : str
            An expression of the kernel's variables, the instruction's parameters and operands
            (addresses), and ``number``.

        Returns
        -------
        object
            Its value.

        Raises
        ------
        RequestError
            If the launch is not stopped, or the expression cannot be evaluated.
        """
        return evaluated(expression, self._where().names)

    # ---

    def _where(self) -> Stop:
        if self.stop is None:
            raise unable("the launch", "the launch has not started: run or step first")
        return self.stop

    def _launch(
        self, kernel: Kernel, blocks: int, arguments: tuple[object, ...], words: Json
    ) -> None:
        outer = current_session()
        options, runs = ({}, []) if outer is None else (outer.options, outer.runs)
        with ScriptSession(options, runs, self._debugger).collecting():
            self.result = launch(kernel, blocks, arguments, words)

    def _go(self, steps: int | None) -> Stop | None:
        stands = self._stands
        if stands is None:
            raise unable("the launch", "the launch has ended or was closed")
        self._user = getcurrent()
        self._debugger.steps, self.stop, self._stands = steps, None, None
        stands.switch()
        return self.stop

    def _stopped(self, stop: Stop) -> None:
        self.stop, self._stands = stop, getcurrent()
        self._user.switch()


def debug(kernel: Kernel, blocks: int, *arguments: object, **words: object) -> Debugging:
    """Return a launch that can be stopped and inspected: ``kernel[blocks](*arguments, **words)``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    blocks : int
        The blocks of the launch.
    *arguments, **words : object
        The kernel's tensors and numbers.

    Returns
    -------
    Debugging
        The launch, which stands before its first instruction.

    Examples
    --------
    >>> import numpy as np
    >>> @cubecore.kernel(outputs="y")
    ... def copy(core, x, y):
    ...     tile = core.ubuf("float", 64)
    ...     core.asc_copy_gm2ub_sync(tile, x, 256)
    ...     core.asc_copy_ub2gm_sync(y, tile, 256)
    >>> x, y = np.arange(64, dtype=np.float32), np.empty(64, np.float32)
    >>> with cubecore.debug(copy, 1, x, y) as launch:
    ...     point = launch.break_at("asc_copy_ub2gm")
    ...     launch.run().reason
    'break'
    """
    return Debugging(kernel, blocks, arguments, words)


def look(
    stop: Stop,
    debugger: LaunchDebugger,
    where: Pointer | str,
    shape: tuple[int, ...],
    layout: str | None,
    dtype: str | None,
) -> MatrixView:
    """Return what memory holds at `where` (see `Debugging.dump`) as the matrix of a shape."""
    kind = None if dtype is None else element_type(dtype)
    if isinstance(where, str):
        target = (
            _memory_address(where, debugger) if ":" in where else evaluated(where, stop.variables)
        )
    else:
        target = where
    if isinstance(target, Pointer):
        return view(stop.core, target.mem, target.address, kind or target.dtype, shape, layout)
    if not isinstance(target, tuple):
        raise refuse(repr(where), "be a pointer", type(target).__name__)
    if kind is None:
        raise unable(str(where), f"a dump of {where} needs an element type")
    mem, address = target
    return view(stop.core, mem, address, kind, shape, layout)


def _memory_address(where: str, debugger: LaunchDebugger) -> tuple[Mem, int]:
    """Return the memory and address that ``UB:0x100`` spells."""
    name, _, text = where.partition(":")
    try:
        address = int(text, 0)
    except ValueError:
        raise refuse("an address", "be a number", repr(text)) from None
    mem = MEMORIES.get(name.upper())
    if mem is not None and mem is not Mem.GM:
        return mem, address
    tensor = debugger.tensors.get(name)
    if tensor is None:
        need = f"begin with a memory or a tensor ({', '.join(debugger.tensors)})"
        raise refuse("an address", need, repr(name))
    return Mem.GM, tensor.address + address
