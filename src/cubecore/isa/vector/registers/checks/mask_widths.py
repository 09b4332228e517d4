"""Masks that were made for lanes of one width and are used for lanes of another."""

from collections.abc import Iterator

from cubecore.isa.declare.remark import Remark
from cubecore.isa.vector.registers.operation import BY_VALUES, Form
from cubecore.isa.vector.registers.operations.moves import STORES
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import NONE, RegisterStep, ValueSource

_MADE = frozenset({Form.PATTERN, Form.COUNT, Form.COMPARE, Form.COMPARE_SCALAR})
_JOINED = frozenset({Form.MASK_UNARY, Form.MASK_BINARY})
_STORES = frozenset({Form.STORE})
_UNIFORM = frozenset({"ALL", "ALLF"})
_DEPTH = 16
"""Masks of masks that are followed."""


def mask_width_remarks(program: RegisterProgram) -> Iterator[Remark]:
    """Yield a note for each call under a mask whose lanes have another width than its own."""
    for step in program.steps.values():
        widths = _used_at(step)
        if step.mask is None or not widths:
            continue
        maker = _maker(program, step.mask, _DEPTH)
        if maker is None or maker.call.width in widths or _fits(maker, min(widths)):
            continue
        made = 8 * maker.call.width
        place = f"{maker.location.file}:{maker.location.line}"
        yield Remark(
            "mask-width",
            f"{step.call.operation.name} must have a mask of {8 * min(widths)}-bit lanes, got one "
            f"that {maker.call.operation.name} ({place}) made for {made}-bit lanes; each lane is "
            "governed by the bit of its lowest byte",
            place,
            step.location,
        )


def _fits(maker: RegisterStep, width: int) -> bool:
    """Return whether a mask says of wider lanes what it says of its own: all, or none."""
    return maker.call.mode in _UNIFORM and maker.call.width <= width


def _used_at(step: RegisterStep) -> frozenset[int]:
    """Return the widths of lanes, in bytes, any of which the mask of a call may be made for."""
    call, form = step.call, step.call.operation.form
    if form in _JOINED or form in {Form.MASK_PLAIN, Form.MASK_PAIR}:
        return frozenset()
    if form in _STORES:
        if STORES[call.mode].masked is None:
            return frozenset()
        _, _, bits = call.mode.rpartition("_B")
        return frozenset({int(bits) // 8 if bits.isdecimal() else call.width})
    source = max(call.source.bits // 8, 1)
    if form in BY_VALUES:
        return (
            frozenset() if call.operation.name == "GatherB" else frozenset({call.width, 2, source})
        )
    if form is Form.REDUCE:
        return frozenset({source})
    return frozenset({call.width, source})


def _maker(program: RegisterProgram, source: ValueSource, depth: int) -> RegisterStep | None:
    """Return a call that gave a mask its width; None if that is not known."""
    if source.leaf == NONE or depth == 0:
        return None
    step = program.steps[source.leaf]
    # Masks made of masks keep the width of those, if they agree.
    if step.call.operation.form in _MADE:
        return step
    if step.call.operation.form not in _JOINED:
        return None
    found = [_maker(program, each, depth - 1) for each in step.sources]
    if None in found or len({each.call.width for each in found if each is not None}) != 1:
        return None
    return found[0]
