"""Vector functions of Python kernels: the decorator, and the calls of the one that is open."""

import sys
from collections.abc import Callable
from functools import wraps
from math import prod
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from cubecore.dtypes import ElementType
from cubecore.errors import CubecoreError, RequestError, refuse, shortened, unable
from cubecore.frontends.capi.calls.binding import forms
from cubecore.frontends.capi.registers import moves
from cubecore.frontends.capi.registers.architectures import REGISTERS_OF, no_registers
from cubecore.frontends.capi.registers.calls import (
    CallArguments,
    given,
    overloads,
    record,
    scalar_of,
)
from cubecore.frontends.capi.registers.handles import Register, VectorRegister, declared_types
from cubecore.frontends.capi.registers.known_calls import KNOWN_CALLS, call_key
from cubecore.frontends.capi.registers.open_function import OpenFunction
from cubecore.frontends.source_locations import KernelError
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.operation import REGISTER_BYTES
from cubecore.isa.vector.registers.operations import catalogue
from cubecore.kernels.build.register_calls import Issued
from cubecore.machine.debug.matrix_view import MatrixView
from cubecore.machine.debug.register_view import register_view
from cubecore.machine.execute.array_bounds import ArrayWatch
from cubecore.machine.execute.core import Core

_CLEARS_AR = "asc_clear_ar_spr"
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Locate = Callable[[FrameType, str], Location]
Issue = Callable[[Instruction, tuple[int, ...], Location], None]


class RegisterCalls:
    """The register instructions of one core: those of the vector function that is open.

    With `keeps_calls` the body of an equal call does not run again.
    """

    def __init__(
        self,
        core: Core,
        locate: Locate,
        issue: Issue,
        arrays: ArrayWatch | None,
        *,
        keeps_calls: bool,
    ) -> None:
        self._core, self._locate, self._issue, self._arrays = core, locate, issue, arrays
        self._keeps_calls = keeps_calls
        self._open: OpenFunction | None = None
        self._is_ar_clear = False

    def run(
        self, function: Callable[..., Result], frame: FrameType, *arguments: Any, **words: Any
    ) -> Result:
        """Run a function as a vector function, issued when it returns; one within it joins.

        Raises
        ------
        KernelError
            If the chip has no registers, or an instruction does not take the types of a call.
        """
        if self._open is not None:
            return function(*arguments, **words)
        name = shortened(function.__name__)
        where = self._locate(frame, name)
        if self._core.chip.arch != REGISTERS_OF:
            raise no_registers(where, name, "a vector function", self._core.chip)
        key = None
        if self._keeps_calls and not words:
            key = call_key(function, arguments[1:], where, watched=self._arrays is not None)
        known = KNOWN_CALLS.get(key) if key is not None else None
        if known is not None:
            self._issue(known.template, known.addresses, where)
            return None  # type: ignore[return-value]  # one with a result is not kept
        opened = self._open = OpenFunction(name, where, is_ar_clear=self._is_ar_clear)
        try:
            result = function(*arguments, **words)
        finally:
            self._open = None
        issued = self._issued(opened)
        if issued is not None and key is not None and result is None:
            KNOWN_CALLS[key] = issued
        return result

    def _issued(self, opened: OpenFunction) -> Issued | None:
        """Issue a function that has ended; return it if a call with equal arguments is the same."""
        try:
            issued = opened.issued()
        except RequestError as error:
            raise KernelError.at(opened.where, error) from None
        if issued is None:
            return None
        if opened.uses_ar:
            self._is_ar_clear = False
        self._issue(issued.template, issued.addresses, opened.where)
        arrays = self._arrays
        is_inside = arrays is None or opened.judge_arrays(issued.template, arrays)
        return issued if is_inside and not (opened.uses_ar or opened.by_values) else None

    def declarer(self, name: str) -> Callable[[], Register]:
        """Return what declares a register of a type such as ``vector_float``."""
        kind = declared_types()[name]

        def declare() -> Register:
            opened = self._opened(name, sys._getframe(1))  # noqa: SLF001 - the caller's line
            if isinstance(kind, ElementType):
                return VectorRegister(opened, kind)
            return kind(opened)

        declare.__name__ = name
        return declare

    def caller(self, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        """Return the call of a name: on registers in a vector function, else `plain`."""
        if overloads(name) is None:
            return plain
        this_frame = sys._getframe  # noqa: SLF001
        has_plain = any(REGISTERS_OF in form.kind.archs for form in forms(name))

        def call(*arguments: Any, **words: Any) -> Any:
            frame = this_frame(1)
            if self._open is None and name == _CLEARS_AR:
                self._is_ar_clear = True  # where the next vector function begins
                return None
            if self._open is None and has_plain and not _registers_among(arguments):
                return plain(*arguments, **words)
            opened, where = self._opened(name, frame), self._locate(frame, name)
            try:
                if words:
                    sentence = f"{name} takes its arguments in their order, none by name"
                    raise unable(name, sentence)
                return _made(given(name, arguments, opened, where))
            except KernelError:
                raise
            except CubecoreError as error:
                raise KernelError.at(where, error) from None

        call.__name__ = name
        return call if self._core.chip.arch == REGISTERS_OF else self._of_other_chips(name, plain)

    def _of_other_chips(self, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        if forms(name):
            return plain

        def call(*_: Any, **__: Any) -> Any:
            where = self._locate(sys._getframe(1), name)  # noqa: SLF001
            raise no_registers(where, name, name, self._core.chip)

        return call

    def _opened(self, name: str, frame: FrameType) -> OpenFunction:
        """Return the open function; refuse a call outside of any."""
        if self._open is not None:
            return self._open
        where = self._locate(frame, name)
        if self._core.chip.arch != REGISTERS_OF:
            raise no_registers(where, name, "a register", self._core.chip)
        need = "stand in a vector function"
        remedy = "decorate the function that calls it with @cubecore.vector_function"
        wrong = refuse(name, need, "a call outside of any", remedy)
        raise KernelError.at(where, wrong)

    def require_closed(self, what: str, where: Location) -> None:
        """Refuse what no vector function holds.

        Raises
        ------
        KernelError
            If one is open.
        """
        if self._open is not None:
            need = f"stand outside of the vector function {self._open.name}"
            wrong = refuse(what, need, "a call in it", "it holds calls on registers alone")
            raise KernelError.at(where, wrong)

    def shown(self, register: Register, shape: tuple[int, ...]) -> MatrixView:
        """Return the first lanes of a vector register as the calls so far leave it.

        Raises
        ------
        RequestError
            If it is no vector register of the open function, or has fewer lanes.
        """
        if not isinstance(register, VectorRegister):
            raise refuse("dump", "be given a pointer or a vector register", str(register))
        opened = self._open
        if opened is None or register.function is not opened:
            need = "be a register of the vector function that is open"
            raise refuse("the register of a dump", need, f"one of {register.function.name}")
        lanes, count = 8 * REGISTER_BYTES // register.dtype.bits, prod(shape)
        if not 1 <= count <= lanes:
            raise refuse("the lanes of a dump", f"be in [1, {lanes}]", count)
        value = register.value
        return register_view(opened.entries, value, register.dtype, count, self._core)


def _registers_among(arguments: tuple[Any, ...]) -> bool:
    return any(isinstance(one, Register) for one in arguments)


def _made(call: CallArguments) -> Any:
    """Record a call, and return what C gives back: a mask, or a pointer that it has moved."""
    row = call.row
    if not row.operation:
        call["dst"].value = call["src"].value
        return None
    recipe = moves.RECIPES.get(row.operation)
    recipe = recipe or moves.BY_FORM.get(catalogue.operations()[row.operation].form)
    if recipe is not None:
        return recipe(call)
    results = [each for each in row.parameters if each.is_result]
    read = [each for each in row.parameters if each.is_source and each.name != "mask"]
    # A result that is read comes behind the sources.
    read.sort(key=lambda each: each.is_result)
    record(
        call,
        results=[call[each.name] for each in results],
        sources=[call[each.name] for each in read],
        scalar=scalar_of(call),
    )
    return None


def vector_function(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make a vector function of Ascend 950 of a function whose first parameter is the core.

    In it ``core.vector_float()`` and its like declare registers, and the C API's names for
    registers are methods of the core; all of its calls are one instruction of the vector unit. What
    C changes by reference a call returns: ``mask, left = core.asc_update_mask_b32(left)``, and the
    pointer behind an access for names with ``_postupdate``.

    Parameters
    ----------
    function : callable
        The function. A kernel calls it; within another vector function it is part of that one. Its
        body does not run again for a call with equal arguments, where it reads nothing else but
        constants.

    Returns
    -------
    callable
        The function with the same parameters.

    Examples
    --------
    >>> import numpy as np
    >>> @cubecore.vector_function
    ... def double(core, x, y):
    ...     value, all_lanes = core.vector_float(), core.asc_create_mask_b32("PAT_ALL")
    ...     core.asc_loadalign(value, x)
    ...     core.asc_add(value, value, value, all_lanes)
    ...     core.asc_storealign(y, value, all_lanes)
    >>> @cubecore.kernel(outputs="y", chip="Ascend950PR_9589")
    ... def doubled(core, x, y):
    ...     given, made = core.ubuf("float", 64), core.ubuf("float", 64)
    ...     core.asc_copy_gm2ub_sync(given, x, 256)
    ...     double(core, given, made)
    ...     core.asc_sync_pipe("PIPE_ALL")
    ...     core.asc_copy_ub2gm_sync(y, made, 256)
    >>> x, y = np.arange(64, dtype=np.float32), np.empty(64, np.float32)
    >>> doubled[1](x, y).clean and bool((y == 2 * x).all())
    True
    """

    @wraps(function)
    def begin(*arguments: Parameters.args, **words: Parameters.kwargs) -> Result:
        core = arguments[0] if arguments else words.get("core")
        registers = getattr(core, "registers", None)
        if not isinstance(registers, RegisterCalls):
            name = shortened(function.__name__)
            raise refuse(f"{name}'s first argument", "be the core", repr(core))
        frame = sys._getframe(1)  # noqa: SLF001 - the caller's line
        return registers.run(function, frame, *arguments, **words)

    return begin
