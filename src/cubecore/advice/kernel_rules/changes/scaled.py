"""An instruction that does several times the work: what larger tiles would issue."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from cubecore.chips.model import Chip
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.declare.instruction import Instruction, Mem, Pipe
from cubecore.isa.mte.copies import Bursts, CopyGmToCbufMultiNd2Nz
from cubecore.isa.mte.copies_unaligned_3510 import CopyGmToUbufAlignV2, CopyUbufToGmAlignV2
from cubecore.isa.program.check import template_violations
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.tree import Issue, Loop, Node
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag, WaitFlag
from cubecore.isa.vector.common.mask import SetMaskCount, SetMaskNorm, SetVectorMask
from cubecore.units import DATA_BLOCK_BYTES, align_up

_STRIDED = (CopyGmToUbufAlignV2, CopyUbufToGmAlignV2)
"""Copies that count from row to row, not between them."""
_LENGTHS = ("repeat", "len_burst", "k", "n_value", "m_size")
"""Parameters of which an instruction's work is a multiple, where it has one of them."""
_ROW_LENGTHS = {"n_value": "d_value", "m_size": "n_size", "n_burst": "len_burst"}
"""By the count of rows of a copy: the length of one."""


class Scaler:
    """Makes instructions that do `factor` times the work, in the order in which they are issued.

    In counter mode a vector instruction does what the mask counts. What has no length is repeated.
    """

    def __init__(self, factor: int, chip: Chip) -> None:
        self._factor, self._chip = factor, chip
        self._counts = False

    def issue(self, node: Issue, step: int = 0, *, changed: bool = True) -> Node:
        """Return an instruction with `factor` times the work, or unchanged.

        `step` is how far apart the tiles of a copy lie in global memory, 0 where that is not known.
        """
        template = node.template
        if isinstance(template, SetMaskCount):
            self._counts = True
        elif isinstance(template, SetMaskNorm):
            self._counts = False
        if not changed:
            return node
        if isinstance(template, SetVectorMask):
            return self._counted(node, template)
        if template.pipe is Pipe.S or isinstance(template, SetFlag | WaitFlag | PipeBarrier):
            return node
        if self._counts and template.pipe is Pipe.V:
            return node
        return scaled(node, self._factor, self._chip, step)

    def _counted(self, node: Issue, template: SetVectorMask) -> Issue:
        if not self._counts:
            return node
        count = template.mask_low * self._factor
        return replace(node, template=replace(template, mask_low=min(count, 2**64 - 1)))


def scaled(node: Issue, factor: int, chip: Chip, step: int = 0) -> Node:
    """Return an instruction that does `factor` times the work, in as few as its ranges allow.

    A copy of rows has longer ones where its tiles lie `step` bytes apart, the length of a row; else
    it has more of them.
    """
    along = step > 0 and step == _row_bytes(node.template)
    for several in _divisors(factor):
        for template in _longer(node.template, factor // several, along=along):
            if not template_violations(template, chip):
                one = replace(node, template=template)
                return one if several == 1 else repeated(one, several)
    return repeated(node, factor)


def rows_together(node: Issue, loop: Loop, chip: Chip) -> Node:
    """Return one copy of as many rows as a loop has trips, each as the loop's copy brings it."""
    template, trips = node.template, loop.trips.constant or 1
    operands = zip(template.operands(), node.addresses, strict=True)
    in_gm = {o.name: dict(at.terms).get(loop.index, 0) for o, at in operands if o.mem is Mem.GM}
    if getattr(template, "n_burst", 0) == 1 and in_gm:
        side, step = next(iter(in_gm.items()))
        rows = with_pitch(with_fields(template, {"n_burst": trips}), side, step)
        if rows is not None and not template_violations(rows, chip):
            return replace(node, template=rows)
    return scaled(node, trips, chip)


def repeated(node: Issue, times: int) -> Node:
    """Return an instruction that is issued so many times."""
    return Loop(Var("again", _variable(node)), Expr(times), (node,))


def _variable(node: Issue) -> int:
    """Return the number of a variable that no address of a recorded program has."""
    return 1 << 30 | (id(node) & 0xFFFFFFF)


def _divisors(factor: int) -> Iterator[int]:
    several = 1
    while several < factor:
        if factor % several == 0:
            yield several
        several += 1


def _longer(template: Instruction, factor: int, *, along: bool) -> Iterator[Instruction]:
    """Yield the instruction with `factor` times its length, by whichever parameter gives it."""
    names = [name for name in _LENGTHS if getattr(template, name, 0)]
    if getattr(template, "n_burst", 1) > 1:
        names.insert(0, "n_burst")
    if along:
        names = [_ROW_LENGTHS.get(name, name) for name in names]
    for name in names:
        yield with_fields(template, {name: getattr(template, name) * factor})


def _row_bytes(template: Instruction) -> int:
    """Return the bytes of a row of a copy; 0 of other instructions."""
    if isinstance(template, CopyGmToCbufMultiNd2Nz):
        size: int = template.dtype.bytes_of(template.d_value)
        return size
    if isinstance(template, CopyMatrixCcToGm):
        return template.n_size * template.element(template.operands()[0]).bits // 8
    rows = getattr(template, "n_burst", 0)
    return template.size_bytes // rows if rows else 0


def pitch_of(template: Instruction, side: str) -> int | None:
    """Return the bytes from a copy's row to the next one's on a side; None where it has no rows."""
    if isinstance(template, _STRIDED):
        stride: int = getattr(template, f"{side}_stride")
        return stride
    gap: int | None = getattr(template, f"{side}_gap", None)
    return None if gap is None else _row_bytes(template) + gap * _gap_bytes(template)


def with_pitch(template: Instruction, side: str, pitch: int) -> Instruction | None:
    """Return a copy whose rows are so many bytes apart on a side; None where it cannot say that."""
    if isinstance(template, _STRIDED):
        other = "dst" if side == "src" else "src"
        in_ub = align_up(_row_bytes(template), DATA_BLOCK_BYTES)
        return with_fields(template, {f"{side}_stride": pitch, f"{other}_stride": in_ub})
    gap, rest = divmod(pitch - _row_bytes(template), _gap_bytes(template))
    return None if gap < 0 or rest else with_fields(template, {f"{side}_gap": gap})


def _gap_bytes(template: Instruction) -> int:
    return DATA_BLOCK_BYTES if isinstance(template, Bursts) else 1


def with_fields(template: Instruction, values: Mapping[str, int]) -> Instruction:
    """Return a template with other values of some of its parameters."""
    return replace(template, **values)  # type: ignore[type-var]
