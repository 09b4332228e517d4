"""The core as a kernel sees it: the C API's names as methods, arrays, pointers, indices."""

import sys
from collections.abc import Callable
from functools import cached_property, partial
from types import FrameType
from typing import TYPE_CHECKING, Any

from cubecore.errors import CubecoreError, did_you_mean
from cubecore.frontends.capi.allocation import SPACES, LocalMemory
from cubecore.frontends.capi.calls.binding import BoundCall, forms
from cubecore.frontends.capi.calls.bound_calls import bound_call
from cubecore.frontends.capi.calls.call_sites import Sites
from cubecore.frontends.capi.calls.issues import Issues
from cubecore.frontends.capi.calls.mmad import bind_mmad
from cubecore.frontends.capi.calls.repeated_calls import RepeatedCalls
from cubecore.frontends.capi.core_output import CoreOutput
from cubecore.frontends.capi.modes import Modes, Said, reserved, stale_mask
from cubecore.frontends.capi.pointer import Pointer, RuntimeInt
from cubecore.frontends.capi.printf import DUMPS
from cubecore.frontends.capi.registers.architectures import (
    REGISTERS_OF,
    of_another_architecture,
    require_own_call,
)
from cubecore.frontends.capi.registers.handles import declared_types
from cubecore.frontends.capi.scalar_access import decoded, scalar_load, scalar_store, value_read
from cubecore.frontends.source_locations import ArchitectureError, KernelError, location
from cubecore.isa.catalogue import spellings
from cubecore.isa.cube.mmad_params import MmadParams
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.program.trace import InstructionTrace
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import FftsCrossCoreSync, SetFlag, Sync, WaitFlag, WaitFlagDev
from cubecore.isa.vector.common.mask import SetVectorMask
from cubecore.machine.debug.debugger import LaunchDebugger
from cubecore.machine.execute.array_bounds import ArrayWatch
from cubecore.machine.execute.core import Core
from cubecore.machine.group.recorder import Recorder
from cubecore.machine.sanitize.findings import SanitizerFinding

if TYPE_CHECKING:
    from cubecore.frontends.capi.registers.vector_functions import RegisterCalls


class CoreHandle(CoreOutput):
    """One core (an AIC or an AIV) of a launch, the first parameter of a kernel.

    Every C API name of an instruction is a method, in each of its forms. The methods record the
    instruction; its meaning is in docs/instructions.md.

    Attributes
    ----------
    ubuf, cbuf, ca, cb, cc, biasbuf, fbuf : LocalMemory
        The memories UB, L1, L0A, L0B, L0C, BT and FB. ``core.ubuf("half", 1024)`` declares an
        array, ``core.ubuf.at("half", address)`` is a pointer to a physical address.
    """

    ubuf: LocalMemory
    cbuf: LocalMemory
    ca: LocalMemory
    cb: LocalMemory
    cc: LocalMemory
    biasbuf: LocalMemory
    fbuf: LocalMemory

    def __init__(
        self,
        core: Core,
        issues: Issues,
        trace: InstructionTrace | None,
        debugger: LaunchDebugger | None = None,
        arrays: ArrayWatch | None = None,
    ) -> None:
        self._core, self._issues, self._trace = core, issues, trace
        self._debugger, self._arrays = debugger, arrays
        self.modes = Modes()
        paths = issues.calls.paths
        self._location = location if paths is None else paths.location
        self._has_registers = core.chip.arch == REGISTERS_OF
        self._repeated: RepeatedCalls | None = None
        if isinstance(core, Recorder) and debugger is None and trace is None:
            self._repeated = RepeatedCalls(core, issues, self.modes, arrays)

    @cached_property
    def registers(self) -> "RegisterCalls":
        """The calls on registers; a launch without any does not load their modules."""
        from cubecore.frontends.capi.registers.vector_functions import RegisterCalls

        keeps_calls = self._debugger is None and self._trace is None
        return RegisterCalls(
            self._core, self._location, self.record, self._arrays, keeps_calls=keeps_calls
        )

    # --- for front ends that bind calls themselves

    @property
    def core(self) -> Core:
        """The core that records or executes."""
        return self._core

    @property
    def issues(self) -> Issues:
        """Return the count of issued instructions, which all cores of the launch share."""
        return self._issues

    @property
    def debugged(self) -> bool:
        """True if a debugger looks at every instruction."""
        return self._debugger is not None

    def record(self, template: Instruction, addresses: tuple[int, ...], where: Location) -> None:
        """Take one instruction, in program order.

        Parameters
        ----------
        template : Instruction
            The instruction without its addresses.
        addresses : tuple of int
            The address of each operand, bytes.
        where : Location
            The source location.

        Raises
        ------
        KernelError
            If the launch has issued more instructions than its limit.
        """
        issues = self._issues
        issues.count += 1
        if issues.count > issues.most:
            raise issues.passed(where)
        if self._trace is not None:
            self._trace.append(template, addresses, where)
        if self._arrays is not None and not isinstance(template, Sync):
            self._arrays.issue(template, addresses, where)
        debugger = self._debugger
        if debugger is None:
            self._core.record(template, addresses, where)
            return
        if isinstance(template, (FftsCrossCoreSync, WaitFlagDev)):  # the engine does not see them
            debugger.before(self._core, (template, addresses, where))
        self._core.record(template, addresses, where)
        self._core.flush()

    def log(
        self, kind: str, message: str, subject: str, where: Location, operand: str = ""
    ) -> None:
        """Report a finding of this core.

        Parameters
        ----------
        kind : str
            The kind of finding; `cubecore explain KIND` describes it.
        message : str
            One sentence.
        subject : str
            The instruction or array that it is about.
        where : Location
            The source location.
        operand : str
            The operand, which has a finding of its own.
        """
        finding = SanitizerFinding(kind, message, subject, where, str(self._core.id))
        self._core.log.add(finding, operand)

    @property
    def is_aic(self) -> bool:
        """True if this is the Cube part of an AI Core (ASC_IS_AIC)."""
        return self._core.id.is_aic

    @property
    def is_aiv(self) -> bool:
        """True if this is a Vector part of an AI Core (ASC_IS_AIV)."""
        return not self._core.id.is_aic

    @property
    def block_idx(self) -> int:
        """As asc_get_block_idx: this part's index among those of its kind in the launch.

        In a mix kernel the AIVs of block b have 2b and 2b + 1, and its AIC has b; so has the AIV of
        a mix_1_1 kernel.
        """
        position = self._core.registers.position
        return RuntimeInt(position.block * position.parts + position.part, "block_idx")

    @property
    def block_num(self) -> int:
        """As asc_get_block_num: the blocks of the launch."""
        return RuntimeInt(self._core.registers.position.blocks, "block_num")

    # --- the basic API

    def Mmad(self, *arguments: Pointer | MmadParams) -> None:  # noqa: N802 - the vendor's name
        """Multiply as the basic API's ``Mmad(dst, fm, filter[, bias], mmadParams)``.

        Parameters
        ----------
        *arguments : Pointer or MmadParams
            dst in L0C (CO1), fm in L0A (A2), filter in L0B (B2), perhaps the bias that C starts
            from, a row in BiasTable (C2) or a tile in L0C, and a `capi.MmadParams`.

        Raises
        ------
        KernelError
            Arguments of another kind, in another memory or of another type; a reserved field that
            is not at its default.

        Examples
        --------
        >>> from cubecore import capi, kernel
        >>> @kernel(kind="cube")
        ... def nothing(core):
        ...     c, a, b = core.cc("float", 256), core.ca("half", 256), core.cb("half", 256)
        ...     core.Mmad(c, a, b, capi.MmadParams())
        >>> nothing[1]().clean
        True
        """
        where = self._location(sys._getframe(1), "Mmad")  # noqa: SLF001
        try:
            issued = bind_mmad(arguments, self._core.chip).issued(arguments)
        except CubecoreError as error:
            raise KernelError.at(where, error) from None
        for template, addresses in issued:
            self.record(template, addresses, where)

    # --- what needs more than one instruction

    def asc_sync_mte2(self, event_id: int) -> None:
        """Make every later instruction wait for the earlier ones of MTE2.

        Parameters
        ----------
        event_id : int
            The flag between MTE2 and the scalar unit that is used.
        """
        self._behind("MTE2", event_id, sys._getframe(1))  # noqa: SLF001

    def asc_sync_mte3(self, event_id: int) -> None:
        """Make every later instruction wait for the earlier ones of MTE3.

        Parameters
        ----------
        event_id : int
            The flag between MTE3 and the scalar unit that is used.
        """
        self._behind("MTE3", event_id, sys._getframe(1))  # noqa: SLF001

    def _behind(self, pipe: str, event: int, frame: FrameType) -> None:
        where = self._location(frame, f"asc_sync_{pipe.lower()}")
        self.record(SetFlag(src=pipe, dst="S", event_id=int(event)), (), where)
        self.record(WaitFlag(src=pipe, dst="S", event_id=int(event)), (), where)

    # --- instructions

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in SPACES:
            mem, arrays = SPACES[name], self._core.gm.local_arrays
            attribute: Callable[..., Any] = LocalMemory(
                mem, self._core.chip, self, self._mixed, arrays
            )
        elif name.startswith("asc_"):
            attribute = self._dumper(DUMPS[name]) if name in DUMPS else self._caller(name)
            if self._has_registers or not forms(name):
                attribute = self.registers.caller(name, attribute)
        elif name in declared_types():
            attribute = self.registers.declarer(name)
        else:
            near = did_you_mean(f"asc_{name}", spellings())
            raise AttributeError(f"a core has no {name}" + (f"; {near}" if near else ""))
        vars(self)[name] = attribute
        return attribute

    def _caller(self, name: str) -> Callable[..., Any]:
        sites = self._issues.calls.sites.setdefault(name, Sites(self._issues.calls.paths))
        slow, this_frame = partial(self._call, name, sites), sys._getframe  # noqa: SLF001
        if self._repeated is not None:
            return self._repeated.of(name, sites, slow)

        def call(*arguments: Any, **keywords: object) -> Any:
            return slow(this_frame(1), arguments, keywords)  # the caller's line, nothing else

        call.__name__ = name
        return call

    def _call(
        self,
        name: str,
        sites: Sites,
        frame: FrameType,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        """Make a call from a frame: bind it, say what there is to say, and record it."""
        modes = self.modes
        site = None if keywords else sites.near(frame, arguments)
        if site is None or not site.fits(arguments):
            where = self._location(frame, name)
            bound = self._bind(name, arguments, keywords, where)
            notice = reserved(bound.steps[0][0], where)
            if not keywords:
                site = sites.keep(frame, where, arguments, bound, notice)
            self._say(notice if keywords or site is None else self._issues.untold(site))
        else:
            where, bound = site.where, site.bound
            self._say(self._issues.untold(site))
        first = bound.steps[0][0]
        self._require_closed(name, where)
        if bound.masked and modes.stale is not None:
            self._say(stale_mask(first, modes.stale, where))
        if bound.masked and modes.counts:
            self._say(modes.cut(first, where))
        if bound.dropped:
            self.log("parameter", bound.dropped, bound.steps[0][0].name, where)
        issued = bound.issued(arguments)
        for template, addresses in issued:
            if modes.lines.changed:
                self._say(modes.passing(template, addresses, where))
            self.record(template, addresses, where)
        modes.follow(issued, where)
        if bound.counted:
            count = next(t for t, _ in bound.steps if isinstance(t, SetVectorMask)).mask_low
            modes.stale = name, count, where
        elif isinstance(first, SetVectorMask):
            modes.stale = None
        return self._answer(first)

    def _require_closed(self, what: str, where: Location) -> None:
        if self._has_registers:
            self.registers.require_closed(what, where)

    def _bind(
        self, name: str, arguments: tuple[object, ...], keywords: dict[str, Any], where: Location
    ) -> BoundCall:
        chip = self._core.chip
        require_own_call(name, chip, where)
        try:
            return bound_call(name, arguments, keywords, chip.arch)
        except CubecoreError as error:
            other = of_another_architecture(name, arguments, keywords, chip)
            if other is not None:
                raise ArchitectureError.at(where, other) from None
            raise KernelError.at(where, error) from None

    def _answer(self, template: Instruction) -> Any:
        """Return what the scalar unit reads, for an instruction that gives it something."""
        if type(template).result is Instruction.result:
            return None
        kind, read = template.answers, self._core.scalars(template)
        if kind is not None:
            return value_read(read[0], kind, template.name)
        values = tuple(RuntimeInt(v, template.name) for v in read)
        return values[0] if len(values) == 1 else values

    # --- values

    def load(self, pointer: Pointer) -> Any:
        """Return the element at a pointer, read by the scalar unit.

        Parameters
        ----------
        pointer : Pointer
            An element of 8 bits or more in any memory that the scalar unit reads.

        Returns
        -------
        int or float
            The value. An integer is a `RuntimeInt`, which must not be the length of an array.

        Raises
        ------
        KernelError
            If the type has fewer than 8 bits, or the bytes lie outside the memory or tensor.
        """
        where = self._location(sys._getframe(1), "load")  # noqa: SLF001
        self._require_closed("a scalar read", where)
        self._issues.read(where)
        return self._decoded(pointer, where)

    def store(self, pointer: Pointer, value: object) -> None:
        """Write a value to the element at a pointer, by the scalar unit.

        In global memory it stays in the core's data cache until a dcci: copies do not see it.

        Parameters
        ----------
        pointer : Pointer
            An element of 8 bits or more in UB or global memory.
        value : int or float
            The value; a float is rounded to the nearest element.

        Raises
        ------
        KernelError
            If the element does not hold the value, or the scalar unit does not write the memory.
        """
        where = self._location(sys._getframe(1), "store")  # noqa: SLF001
        self._require_closed("a scalar store", where)
        issued = scalar_store(pointer, value, where), (pointer.address,)
        self._say(self.modes.passing(*issued, where))
        self.record(*issued, where)
        self.modes.follow((issued,), where)

    def _decoded(self, pointer: Pointer, where: Location) -> Any:
        key = id(where), pointer.mem, pointer.dtype.name
        load_and_origin = self._issues.calls.loads.get(key)
        if load_and_origin is None:
            load_and_origin = self._issues.calls.loads[key] = scalar_load(pointer, where)
        load, at, kind = load_and_origin[0], pointer.address, pointer.dtype
        if load.by_cache:
            self._say(self.modes.behind(at, at + kind.size_bytes, where))
        if self._arrays is not None:
            self._arrays.load(load, at)
        raw = self._core.load_scalar(load, at)
        if self._debugger is not None:
            self._debugger.read(self._core, load, at)
        return decoded(raw, load_and_origin)

    # --- findings

    def ended(self) -> None:
        """Judge what the kernel leaves on."""
        for said in self.modes.left():
            self._say(said)

    def release(self) -> None:
        """Drop the calls and memories made ready: they refer back, and would outlive the launch."""
        for name in [name for name in vars(self) if not name.startswith("_")]:
            delattr(self, name)
        if self._issues.calls.paths is not None:
            self._issues.calls.paths.release()

    def _say(self, said: Said | None) -> None:
        if said is not None:
            self.log(*said)

    def _mixed(self, message: str) -> None:
        self.log("mixed-allocation", message, "array", self._location(sys._getframe(1)))  # noqa: SLF001
