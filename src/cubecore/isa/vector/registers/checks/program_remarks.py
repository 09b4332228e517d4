"""Remarks of a vector function on itself: those of all checks, in one order."""

from dataclasses import replace
from functools import lru_cache
from itertools import chain

from cubecore.isa.declare.remark import Remark, RemarkedAccess
from cubecore.isa.vector.registers.checks.forms import call_remarks
from cubecore.isa.vector.registers.checks.live_registers import live_register_remarks
from cubecore.isa.vector.registers.checks.mask_widths import mask_width_remarks
from cubecore.isa.vector.registers.checks.races import races
from cubecore.isa.vector.registers.checks.unaligned_streams import stream_remarks
from cubecore.isa.vector.registers.checks.undefined import stale_lane_remarks
from cubecore.isa.vector.registers.program import RegisterProgram


@lru_cache(maxsize=512)
def remarks_on(program: RegisterProgram, start: int) -> tuple[Remark, ...]:
    """Return the findings of a program; accesses count from `start` on, a place behind its base."""
    checks = (
        call_remarks,
        mask_width_remarks,
        stale_lane_remarks,
        stream_remarks,
        live_register_remarks,
        races,
    )
    found = chain.from_iterable(check(program) for check in checks)
    return tuple(replace(each, accesses=_from(each, start)) for each in found)


def _from(remark: Remark, start: int) -> tuple[RemarkedAccess, ...]:
    return tuple(
        replace(access, start=access.start - start, end=access.end - start)
        for access in remark.accesses
    )
