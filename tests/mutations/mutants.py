"""A recorded launch with one thing wrong in it: what an author may get wrong, site by site.

A site is a source line and the instruction that it issues; a mutation changes it wherever it runs,
as a change of the line would. A flag or a barrier is also dropped once: the first, the middle and
the last time that it runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from cubecore.isa.declare.instruction import Mem
from cubecore.isa.scalar.sync import FftsCrossCoreSync, PipeBarrier, SetFlag, WaitFlag, WaitFlagDev
from cubecore.isa.vector.common.mask import SetMaskCount, SetMaskNorm, SetVectorMask
from cubecore.machine.execute.array_bounds import moved
from mutations.recording import Read

SHIFTS = (1, 32, 512)
COPY_SIZES = ("n_burst", "len_burst", "n_value", "d_value", "repeat", "m_size", "n_size")
KINDS = (
    *("drop a wait", "drop a set", "drop a barrier", "drop a signal between cores"),
    *(f"shift an address by {n} B" for n in SHIFTS),
    *("grow a repeat", "shrink a copy", "skip an initialisation", "swap buffers"),
)
_DROPPED = {
    WaitFlag: "drop a wait",
    WaitFlagDev: "drop a wait",
    SetFlag: "drop a set",
    PipeBarrier: "drop a barrier",
    FftsCrossCoreSync: "drop a signal between cores",
}


@dataclass(frozen=True)
class Mutant:
    """A launch with one thing wrong, and where: the site's place and its instruction."""

    kind: str
    detail: str
    site: tuple
    streams: dict
    touched: frozenset = frozenset()
    """Places in the streams that were changed: (core, index), or where something is missing."""

    def __str__(self):
        where, name = self.site
        return f"{where.line} {name}: {self.kind} ({self.detail})"


def mutants(recording) -> Iterator[Mutant]:
    """Yield every mutant of a recording that differs from it."""
    yield from _without_order(recording)
    yield from _data(recording)


def _sites(streams, wanted):
    """Return the places (core, index) of each site whose instruction `wanted` takes."""
    found: dict[tuple, list] = {}
    for core, stream in streams.items():
        for index, item in enumerate(stream):
            if not isinstance(item, Read) and wanted(item[0]):
                found.setdefault((item[2], item[0].name), []).append((core, index))
    return found


def _dropped(streams, places):
    gone = set(places)
    return {
        core: [item for index, item in enumerate(stream) if (core, index) not in gone]
        for core, stream in streams.items()
    }


def _without_order(recording):
    streams = recording.streams
    for site, places in _sites(streams, lambda t: type(t) in _DROPPED).items():
        kind = _DROPPED[type(_item(streams, places[0])[0])]
        yield Mutant(kind, "always", site, _dropped(streams, places), frozenset(places))
        once = dict.fromkeys((places[0], places[len(places) // 2], places[-1]))
        if len(places) > 1:
            for place in once:
                detail = f"once, at {place[0]} #{place[1] + 1}"
                yield Mutant(kind, detail, site, _dropped(streams, [place]), frozenset([place]))


def _item(streams, place):
    return streams[place[0]][place[1]]


def _edited(streams, places, edit):
    """Return the streams with the items at `places` edited; None if that changes nothing."""
    made = {core: list(stream) for core, stream in streams.items()}
    changed = []
    for core, index in places:
        item = streams[core][index]
        other = edit(item)
        if other is not None and other[:2] != item[:2]:
            made[core][index] = other
            changed.append((core, index))
    return (made, frozenset(changed)) if changed else None


def _data(recording):
    streams, counting = recording.streams, _under_a_count(recording.streams)
    for site, places in _sites(streams, lambda t: bool(t.operands())).items():
        template = _item(streams, places[0])[0]
        counted = all(place in counting for place in places)
        for kind, detail, edit in _edits(streams, places, template, counted=counted):
            edited = _edited(streams, places, edit)
            if edited is not None:
                yield Mutant(kind, detail, site, *edited)
    for site, places in _initialisations(recording):
        yield Mutant(
            "skip an initialisation", "", site, _dropped(streams, places), frozenset(places)
        )
    for site, places in _counts(streams):
        edited = _edited(streams, places, _field("mask_low", 1))
        if edited is not None:
            yield Mutant("grow a repeat", "count + 1", site, *edited)


def _under_a_count(streams):
    """Return the places in counter mode, where the repeat argument is ignored."""
    found = set()
    for core, stream in streams.items():
        counts = False
        for index, item in enumerate(stream):
            if not isinstance(item, Read):
                counts = type(item[0]) is SetMaskCount or (
                    counts and type(item[0]) is not SetMaskNorm
                )
            if counts:
                found.add((core, index))
    return found


def _edits(streams, places, template, *, counted):
    for operand in template.operands():
        for size in SHIFTS:
            yield f"shift an address by {size} B", operand.name, _shift(operand.name, size)
    names = {f.name for f in fields(template)}
    if "repeat" in names and not template.copies and not counted:
        yield "grow a repeat", "repeat + 1", _field("repeat", 1)
    if template.copies or "m_size" in names:
        for name in COPY_SIZES:
            if name in names:
                yield "shrink a copy", f"{name} - 1", _field(name, -1)
    for operand in template.operands():
        at = [_address(_item(streams, place), operand.name) for place in places]
        used = list(dict.fromkeys(at))
        if len(used) == 2 and None not in used and operand.mem is not Mem.GM:
            yield "swap buffers", f"{operand.name}, in turn", _exchange(operand.name, used)
    for one in template.operands():
        for other in template.operands():
            differ = one is not other and one.access.writes and other.access.reads
            if differ and one.mem is other.mem:
                yield "swap buffers", f"{one.name} and {other.name}", _swap(one.name, other.name)


def _address(item, operand):
    """Return an operand's address; None where the site's template has no such operand."""
    return dict(zip((o.name for o in item[0].operands()), item[1], strict=False)).get(operand)


def _placed(item, addresses):
    """Return the instruction with some operands elsewhere; None where one of them is missing."""
    names = [o.name for o in item[0].operands()]
    if not set(addresses) <= set(names):
        return None
    given = dict(zip(names, item[1], strict=True)) | addresses
    return item[0], tuple(given[name] for name in names), item[2]


def _shift(operand, size):
    def edit(item):
        at = _address(item, operand)
        return None if at is None else _placed(item, {operand: moved(at, size)})

    return edit


def _field(name, step):
    def edit(item):
        value = getattr(item[0], name)
        if value + step < 1:
            return None
        return replace(item[0], **{name: value + step}), item[1], item[2]

    return edit


def _exchange(operand, pair):
    def edit(item):
        other = pair[1] if _address(item, operand) == pair[0] else pair[0]
        return _placed(item, {operand: other})

    return edit


def _swap(one, other):
    def edit(item):
        return _placed(item, {one: _address(item, other), other: _address(item, one)})

    return edit


def _initialisations(recording):
    """Yield the sites that write bytes of a local memory which nothing has written before."""
    from mutations.recording import first_writers

    streams = recording.streams
    first = first_writers(recording)
    sites = _sites(streams, lambda t: bool(t.operands()))
    for site, places in sites.items():
        if first & set(places):
            yield site, places


def _counts(streams):
    """Yield the sites that count elements: the masks that stand behind set_mask_count."""
    sites: dict[tuple, list] = {}
    for core, stream in streams.items():
        for index, item in enumerate(stream[1:], 1):
            before = stream[index - 1]
            if isinstance(item, Read) or isinstance(before, Read):
                continue
            if isinstance(item[0], SetVectorMask) and isinstance(before[0], SetMaskCount):
                sites.setdefault((item[2], item[0].name), []).append((core, index))
    yield from sites.items()
