"""Calls that C++ kernels made before: bound once, for later launches too."""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from cubecore.cache import BoundedCache
from cubecore.frontends.capi.binding import BoundCall, bind
from cubecore.frontends.capi.bound_calls import call_key
from cubecore.frontends.cpp.launch.recording.structures import CallStep
from cubecore.frontends.cpp.launch.recording.sync_operands import note_order
from cubecore.isa.vector.common.mask import SetVectorMask
from cubecore.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A call that is known: its instructions, and the runtime's steps, but for their numbers.

    `count` is the number of elements that the call gives, which stands in the mask.
    """

    bound: BoundCall
    steps: bytes
    count: int | None


_Key = tuple[object, ...]
_known: BoundedCache[_Key, KnownCall] = BoundedCache()


def known_call(
    name: str, arguments: Sequence[Any], keywords: Mapping[str, Any], arch: str
) -> KnownCall:
    """Return what a call issues.

    Raises
    ------
    RequestError
        If there is no such call, or the arguments fit none of its forms.
    """
    key = call_key(name, arguments, keywords, arch)
    call = _known.get(key)
    if call is None:
        call = _known[key] = _made(bind(name, arguments, keywords, arch))
    return call


def _made(bound: BoundCall) -> KnownCall:
    masks = (t.mask_low for t, _ in bound.steps if isinstance(t, SetVectorMask))
    count = next(masks, None) if bound.counted else None
    steps = (CallStep * len(bound.steps))()
    for step, (template, sources) in zip(steps, bound.steps, strict=True):
        weighed = template.fully_addressed()
        given = sources if weighed is template else range(len(weighed.operands()))
        step.operands, step.weighed = len(sources), len(given)
        for index, source in enumerate(given):
            step.from_[index] = -1 if source is None else source
        note_order(step, weighed, count)
    return KnownCall(bound, ctypes.string_at(steps, ctypes.sizeof(steps)), count)
