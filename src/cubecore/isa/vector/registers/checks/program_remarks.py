"""Remarks of a vector function on itself: those of all checks, in one order."""

from dataclasses import replace
from functools import lru_cache
from itertools import chain

from cubecore.isa.declare.remark import Remark, RemarkedAccess
from cubecore.isa.vector.registers.checks.forms import call_remarks
from cubecore.isa.vector.registers.checks.landings import (
    landing_remarks,
    squeeze_order_remarks,
)
from cubecore.isa.vector.registers.checks.live_registers import live_register_remarks
from cubecore.isa.vector.registers.checks.mask_widths import mask_width_remarks
from cubecore.isa.vector.registers.checks.races import races
from cubecore.isa.vector.registers.checks.unaligned_streams import stream_remarks
from cubecore.isa.vector.registers.checks.undefined import stale_lane_remarks
from cubecore.isa.vector.registers.program import RegisterProgram


@lru_cache(maxsize=512)
def remarks_on(program: RegisterProgram, start: int) -> tuple[Remark, ...]:
    """Return the findings of a program; accesses count from `start` on, a place behind its base."""
    checks = (landing_remarks, stale_lane_remarks, races)
    found = [*_of_calls(program.origin), *chain.from_iterable(check(program) for check in checks)]
    return tuple(replace(each, accesses=_from(each, start)) for each in found)


@lru_cache(maxsize=512)
def _of_calls(program: RegisterProgram) -> tuple[Remark, ...]:
    """Return the findings that do not hang on where values of registers say."""
    checks = (
        call_remarks,
        mask_width_remarks,
        stream_remarks,
        squeeze_order_remarks,
        live_register_remarks,
    )
    return tuple(chain.from_iterable(check(program) for check in checks))


def _from(remark: Remark, start: int) -> tuple[RemarkedAccess, ...]:
    return tuple(
        replace(access, start=access.start - start, end=access.end - start)
        for access in remark.accesses
    )
