"""Accesses of UB whose bytes values of registers decide: what those values hang on, and the bytes.

The values are those of indices, of masks, and of what squeezes counted. Where they hang on no load
the bytes are known with the program; where they hang on loads alone that the program has not stored
before, they follow from the bytes that it loads; else they may hang on any byte of UB.
"""

from collections.abc import Sequence
from enum import Enum
from functools import cache, lru_cache

import numpy as np

from cubecore.arrays import Array
from cubecore.chips.catalog import chip, default_chip_of
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.check import memory_bytes
from cubecore.isa.vector.registers.coverage import rewrites
from cubecore.isa.vector.registers.execution import ALL_BITS, Execution
from cubecore.isa.vector.registers.folding import FoldedCall, Node
from cubecore.isa.vector.registers.independence import independent_loops
from cubecore.isa.vector.registers.operation import Bits, Form
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import NONE, Landed, RegisterStep, ValueSource

_DECIDED_BY = {Form.GATHER: (0,), Form.SCATTER: (1,), Form.STORE_COUNTED: (1, 2)}
"""The sources that say where a call accesses UB, beside its mask."""


class Deciders(Enum):
    """The values that decide where a program's calls access UB."""

    PROGRAM = "the program alone"
    LOADS = "bytes that it loads"
    IN_ORDER = "bytes that it loads, some of which it may have stored"
    MEMORY = "bytes that indices pick"


@cache
def ub_bytes() -> tuple[int, int]:
    """Return the bytes of UB of the architecture that has registers, and those that are free."""
    return memory_bytes(chip(default_chip_of("3510")), Mem.UB)


def has_landings(program: RegisterProgram) -> bool:
    """Return whether values of registers say where some of a program's calls access UB."""
    return any(step.by_values for step in program.steps.values())


def deciders(program: RegisterProgram) -> Deciders:
    """Return what decides where a program's calls access UB."""
    return _deciders(program.origin)


@lru_cache(maxsize=512)
def _deciders(program: RegisterProgram) -> Deciders:
    needed = [program.steps[number] for number in _needed(program)]
    loads = [step for step in needed if step.loads]
    if not loads:
        masked = any(step.call.operation.form is Form.MASK_BITS for step in needed)
        return Deciders.MEMORY if masked else Deciders.PROGRAM
    stores = [step for step in program.steps.values() if step.stores]
    stored = any(step.by_values for step in stores) or rewrites([*loads, *stores])
    gathers = [s for s in program.steps.values() if s.call.operation.form is Form.GATHER]
    if any(step.by_values for step in needed) or (gathers and stored):
        return Deciders.MEMORY
    return Deciders.IN_ORDER if stored else Deciders.LOADS


def _deciding(step: RegisterStep) -> list[ValueSource]:
    numbers = _DECIDED_BY[step.call.operation.form]
    sources = [step.sources[n] for n in numbers if n < len(step.sources)]
    return [*sources, *filter(None, [step.mask])]


def _needed(program: RegisterProgram, *, counted: bool = False) -> set[int]:
    """Return the steps that the values hang on which decide accesses, through registers.

    With `counted` those of lanes that squeezes count, too: the count is of the mask alone.
    """
    steps = program.steps
    open_ = [s for step in steps.values() if step.by_values for s in _deciding(step)]
    found, seen = set[int](), set[tuple[int, int]]()
    while open_:
        source = open_.pop()
        if source.initial is not None:
            open_.append(source.initial)
        if source.leaf != NONE and (source.leaf, source.result) not in seen:
            seen.add((source.leaf, source.result))
            found.add(source.leaf)
            step = steps[source.leaf]
            alone = step.call.operation.form is Form.COUNTED and source.result == 1 and not counted
            open_ += [*(() if alone else step.sources), *filter(None, [step.mask])]
    return found


def landed(
    program: RegisterProgram, image: Array, ctrl: int, mask: int = ALL_BITS
) -> RegisterProgram:
    """Return a program with the bytes that its calls access, from an image of UB of one core.

    The image holds what decides; it is changed where that is more than what the program loads.
    `mask` has the bits of MASK1 and MASK0.
    """
    in_order = deciders(program) in {Deciders.MEMORY, Deciders.IN_ORDER}
    run = _Landing(program, image, ctrl, mask, whole=in_order)
    run.run(program.nodes)
    return program.landing(run.landed)


class _Landing(Execution):
    """A run for the bytes that calls access: of all calls, or of those alone that decide them."""

    def __init__(
        self, program: RegisterProgram, image: Array, ctrl: int, mask: int, *, whole: bool
    ) -> None:
        super().__init__(program, image, ctrl, mask)
        self._whole = whole
        self.landed: dict[int, Landed] = {}
        needed = _needed(program, counted=True)
        self._run_ = {n: step for n, step in program.steps.items() if n in needed or step.by_values}
        # What follows from loads alone needs no store, so that no trip waits for an earlier one.
        decided = {n: step for n, step in self._run_.items() if not step.stores}
        self._together = (
            frozenset[int]() if whole else frozenset(independent_loops(program.nodes, decided))
        )

    def runs_together(self, loop: int) -> bool:
        """Return whether a loop's trips run at once here."""
        return loop in self._together

    def run(self, nodes: Sequence[Node]) -> None:
        """Run those nodes whose leaves are of need."""
        for node in nodes:
            if self._whole or not isinstance(node, FoldedCall) or node.number in self._run_:
                super().run([node])

    def _step(self, step: RegisterStep) -> None:
        if self._whole or not step.by_values:
            super()._step(step)
            return
        axes, at = self._axes(step)
        mask = self._mask(step, axes)
        wanted = _DECIDED_BY[step.call.operation.form]
        inputs: list[Array] = [
            self._value(source, axes) if n in wanted else np.zeros((1, 1), np.uint8)
            for n, source in enumerate(step.sources)
        ]
        self._land(step, at, inputs, mask)

    def _land(
        self,
        step: RegisterStep,
        at: tuple[int | slice, ...],
        inputs: Sequence[Array],
        mask: Bits | None,
    ) -> Landed:
        """Note where a step accesses UB on some trips, and return that."""
        lands = step.call.operation.lands
        assert lands is not None
        landing = lands(step.call, inputs, mask)
        known = self.landed.get(step.number)
        if known is None:
            shape = (*step.addresses.shape, landing.offsets.shape[-1])
            low = np.broadcast_to(step.addresses[..., None], shape).copy()
            known = Landed(low, np.zeros(shape, np.int64), landing.unit)
            self.landed[step.number] = known
        known.low[at] = step.addresses[at][..., None] + landing.offsets[0]
        known.sizes[at] = landing.sizes[0]
        return Landed(known.low[at], known.sizes[at], known.unit)
