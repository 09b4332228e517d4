"""Elements of an operand, computed once for every issue template."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cubecore.dtypes import ElementType
from cubecore.isa.declare.instruction import Instruction, Operand
from cubecore.isa.declare.operand_overlap import STEERED
from cubecore.layouts import Offsets
from cubecore.machine.memory.strided import Lattice, lattices


@dataclass(frozen=True, eq=False, slots=True)
class Elements:
    """An operand's elements, counted from its address.

    `active` are those that the mask lets through, None where it lets all; `through` are their
    offsets. `first` is where all of them lie one after another in order, None where they do not.
    `run` is (first, start, stop) where what the mask lets through are the elements [start, stop),
    which lie one after another from `first` on. `span` are the bytes [start, end) between which
    `through` lies, None where there are none.
    """

    offsets: Offsets
    active: NDArray[np.bool_] | None
    through: Offsets
    first: int | None
    run: tuple[int, int, int] | None
    span: tuple[int, int] | None

    @staticmethod
    def of(offsets: Offsets, active: NDArray[np.bool_] | None, element: ElementType) -> "Elements":
        """Prepare offsets, of which a mask of the same shape lets some through."""
        if active is not None and active.all():
            active = None
        through = offsets if active is None else offsets[active]
        inside = through[through >= 0]
        span = None
        if inside.size:
            span = element.extent_bytes(int(inside.min()), int(inside.max()))
        whole = _run(offsets, None, element)
        run = whole if active is None else _run(offsets, active, element)
        return Elements(offsets, active, through, None if whole is None else whole[0], run, span)


def _run(
    offsets: Offsets, active: NDArray[np.bool_] | None, element: ElementType
) -> tuple[int, int, int] | None:
    """Return (first offset, start, stop) of the elements that are let through, if they are one."""
    flat = offsets.reshape(-1)
    indices = np.arange(flat.size) if active is None else np.flatnonzero(active)
    if element.bits % 8 or not indices.size or np.any(np.diff(indices) != 1):
        return None
    start, stop = int(indices[0]), int(indices[-1]) + 1
    # A run needs two things: the active elements follow each other in order, and so do their
    # offsets.
    chosen = flat[start:stop]
    return None if chosen[0] < 0 or np.any(np.diff(chosen) != 1) else (int(chosen[0]), start, stop)


@lru_cache(maxsize=1024)
def even(here: Elements) -> Lattice | None:
    """Return the offsets as a lattice; None if they are none, or some are filled."""
    if not here.offsets.size or int(here.offsets.min()) < 0:
        return None
    of_rows = lattices(here.offsets)
    return None if of_rows is None else of_rows[0]


def elements(template: Instruction, operand: str) -> Elements:
    """Return the elements that an operand of a resolved template touches."""
    return (_steered if template.steering else _elements)(template, operand)


def part(template: Instruction, operand: str, index: int) -> Elements:
    """Return those of one repeat, the first axis kept."""
    active = template.active(operand)
    here = slice(index, index + 1)
    (element,) = (template.element(o) for o in template.operands() if o.name == operand)
    offsets = template.offsets(operand)
    return Elements.of(offsets[here], None if active is None else active[here], element)


@dataclass(frozen=True, eq=False, slots=True)
class Use:
    """An operand of a resolved template, with what an engine asks of it at every issue.

    `low` and `high` are the bytes [low, high) between which it lies, counted from its address; both
    0 where it touches nothing.
    """

    operand: Operand
    name: str
    element: ElementType
    elements: Elements
    reads: bool
    writes: bool
    unit: int
    low: int
    high: int


def uses(template: Instruction) -> tuple[Use, ...]:
    """Return the uses of a template's operands, in their order."""
    return (_steered_uses if template.steering else _uses)(template)


def use(template: Instruction, operand: Operand) -> Use:
    """Return one operand's use."""
    here, access = elements(template, operand.name), operand.access
    low, high = here.span or (0, 0)
    element, unit = template.element(operand), operand.alignment
    return Use(operand, operand.name, element, here, access.reads, access.writes, unit, low, high)


def steering_uses(template: Instruction) -> tuple[tuple[int, Use], ...]:
    """Return the operands whose values decide what the others touch, with their numbers."""
    numbered, names = enumerate(template.operands()), template.steering
    return tuple((number, use(template, o)) for number, o in numbered if o.name in names)


def _find_uses(template: Instruction) -> tuple[Use, ...]:
    return tuple(use(template, operand) for operand in template.operands())


_uses = lru_cache(maxsize=1024)(_find_uses)
_steered_uses = lru_cache(maxsize=STEERED)(_find_uses)


def _find(template: Instruction, operand: str) -> Elements:
    (element,) = (template.element(o) for o in template.operands() if o.name == operand)
    return Elements.of(template.offsets(operand), template.active(operand), element)


_elements = lru_cache(maxsize=1024)(_find)
_steered = lru_cache(maxsize=STEERED)(_find)
