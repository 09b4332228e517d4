"""Calls that C++ kernels made before: bound once, for the processes of later launches too.

Modules that such a process imports, methods of data classes that it compiles, and plans of
templates that it makes are learnt beside them.

A process that runs a launch ends with what it learnt. It says so in bytes, which this process
reads when the next launch is due.
"""

import ctypes
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any

from cubecore.cache import BoundedCache
from cubecore.chips.model import Chip
from cubecore.frontends.capi.binding import BoundCall, bind
from cubecore.frontends.capi.bound_calls import call_key
from cubecore.frontends.cpp.recording.structures import CallStep
from cubecore.frontends.cpp.recording.touched import note_order
from cubecore.isa.vector.common.mask import SetVectorMask
from cubecore.lazy_dataclass import MethodName, compile_methods, dataclass, newly_compiled
from cubecore.machine.reference.issue_cache import PlanKey, newly_planned, plan_again

_MOST_UNREAD = 64
_OURS = ("cubecore.", "numpy.")


@dataclass(frozen=True, slots=True)
class KnownCall:
    """What a call issues: its instructions, and the runtime's steps, but for their numbers.

    `count` is the number of elements that the call gives, which stands in the mask.
    """

    bound: BoundCall
    steps: bytes
    count: int | None


_Key = tuple[object, ...]
_known: BoundedCache[_Key, KnownCall] = BoundedCache()
_new: dict[_Key, KnownCall] = {}
_unread: list[tuple[bytes, Chip]] = []
_imported = [0]
"""How many modules the next process finds: their names are not looked at in each."""


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
        call = _known[key] = _new[key] = _made(bind(name, arguments, keywords, arch))
    return call


def learnt(packed: Callable[[object], bytes]) -> bytes:
    """Return the calls that this process has bound, its new modules, methods and plans."""
    new = islice(reversed(sys.modules), len(sys.modules) - _imported[0])
    modules = sorted(name for name in new if name.startswith(_OURS))
    return packed((_new, modules, newly_compiled(), newly_planned()))


def learn(raw: bytes, chip: Chip) -> None:
    """Keep what a process has learnt, which ran a launch on a chip."""
    if len(_unread) < _MOST_UNREAD:
        _unread.append((raw, chip))


def recall() -> None:
    """Read what processes have learnt, before the next one begins."""
    methods: set[MethodName] = set()
    plans: list[tuple[PlanKey, Chip]] = []
    while _unread:
        raw, chip = _unread.pop()
        calls, modules, compiled, planned = pickle.loads(raw)  # noqa: S301 - our own process
        for name in modules:
            import_module(name)
        for key, call in calls.items():
            _known[key] = call
        methods.update(compiled)
        plans += [(key, chip) for key in planned]
    compile_methods(methods)
    plan_again(plans)
    _imported[0] = len(sys.modules)
    _new.clear()


def _made(bound: BoundCall) -> KnownCall:
    masks = (t.mask_low for t, _ in bound.steps if isinstance(t, SetVectorMask))
    count = next(masks, None) if bound.counted else None
    steps = (CallStep * len(bound.steps))()
    for step, (template, sources) in zip(steps, bound.steps, strict=True):
        step.operands = len(sources)
        for index, source in enumerate(sources):
            step.from_[index] = -1 if source is None else source
        note_order(step, template, count)
    return KnownCall(bound, ctypes.string_at(steps, ctypes.sizeof(steps)), count)
