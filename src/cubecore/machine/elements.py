"""Which elements an operand touches, prepared once for every template."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cubecore.dtypes import ElementType
from cubecore.isa.overlap import STEERED
from cubecore.isa.spec import Instruction
from cubecore.layouts import Offsets


@dataclass(frozen=True, eq=False, slots=True)
class Elements:
    """An operand's elements, counted from its address.

    `active` are those that the mask lets through, None where it lets all; `through` are their
    offsets. `first` is where all of them lie one after another in order, None where they do not.
    `span` are the bytes [start, end) between which `through` lies, None where there are none.
    """

    offsets: Offsets
    active: NDArray[np.bool_] | None
    through: Offsets
    first: int | None
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
        first = int(offsets.flat[0]) if offsets.size else None
        if first is None or first < 0 or element.bits % 8 or np.any(np.diff(offsets.flat) != 1):
            first = None
        return Elements(offsets, active, through, first, span)


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


def _find(template: Instruction, operand: str) -> Elements:
    (element,) = (template.element(o) for o in template.operands() if o.name == operand)
    return Elements.of(template.offsets(operand), template.active(operand), element)


_elements = lru_cache(maxsize=1024)(_find)
_steered = lru_cache(maxsize=STEERED)(_find)
