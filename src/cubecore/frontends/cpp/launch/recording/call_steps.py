"""A bound call as the runtime has it: its instructions as records, but for their numbers."""

import ctypes
from dataclasses import dataclass
from functools import lru_cache

from cubecore.frontends.capi.calls.binding import BoundCall
from cubecore.frontends.cpp.launch.recording.sync_operands import note_order
from cubecore.frontends.cpp.wire import Step
from cubecore.isa.vector.common.mask import SetVectorMask


@dataclass(frozen=True, slots=True)
class RuntimeSteps:
    """The records of a call's instructions; `count` is the number of elements that it sets."""

    raw: bytes
    count: int | None


@lru_cache(maxsize=4096)
def runtime_steps(bound: BoundCall) -> RuntimeSteps:
    """Return the records of a call."""
    masks = (t.mask_low for t, _ in bound.steps if isinstance(t, SetVectorMask))
    count = next(masks, None) if bound.counted else None
    steps = (Step * len(bound.steps))()
    for step, (template, sources) in zip(steps, bound.steps, strict=True):
        weighed = template.fully_addressed()
        given = sources if weighed is template else range(len(weighed.operands()))
        step.operands, step.weighed = len(sources), len(given)
        for index, source in enumerate(given):
            step.pointers[index] = -1 if source is None else source
        note_order(step, weighed, count)
    return RuntimeSteps(ctypes.string_at(steps, ctypes.sizeof(steps)), count)
