"""Folding: a trace becomes loops where it repeats with addresses that move evenly.

Items are instructions or loops. After each instruction the end of the sequence is looked at: a run
of items that continues the loop before it is one more trip of it; two equal runs become a loop of
two trips. Nested loops follow, since loops are items too. Unfolded, the result is the trace again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cubecore.isa.declare.instruction import Instruction, Pipe
from cubecore.isa.program.trace import InstructionTrace
from cubecore.isa.scalar.store import ScalarStore

_LONGEST_BODY = 512
"""Items of a loop's body that are looked for."""


@dataclass(frozen=True, slots=True)
class FoldedInstruction:
    """One instruction of a trace: its template, its source location, its count of addresses.

    `varies`: the value that its line takes from the scalar unit is not always the template's.
    """

    kind: int
    location: int
    width: int
    varies: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    """`trips` times a body; `steps` is how far each address of the body moves from trip to trip."""

    trips: int
    body: tuple[int, ...]
    steps: tuple[int, ...]


Shape = FoldedInstruction | Repeat
Bases = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A shape by its number, and its addresses in the first trip of all loops within."""

    shape: int
    bases: Bases


class Folder:
    """Folds traces; equal shapes of all of them have one number."""

    def __init__(self) -> None:
        self.shapes: list[Shape] = []
        self._numbers: dict[Shape, int] = {}
        self._templates: Sequence[Instruction] = ()
        self._numbers_timed: list[int] = []

    def number(self, shape: Shape) -> int:
        """Return the number of a shape."""
        number = self._numbers.get(shape)
        if number is None:
            number = self._numbers[shape] = len(self.shapes)
            self.shapes.append(shape)
        return number

    def fold(self, trace: InstructionTrace) -> list[Item]:
        """Return a trace as items."""
        run = _Run(self)
        widths = [len(t.operands()) for t in trace.templates]
        timed_as = self._timed_as(trace.templates)
        varying = _varying(trace, timed_as)
        at = 0
        for recorded, location_number in zip(trace.kinds, trace.wheres, strict=True):
            # An item is pushed, and the end folded for as long as it can be: one fold may make the
            # next one possible, as where an inner loop completes a trip of an outer one.
            kind = timed_as[recorded]
            width = widths[kind]
            bases = tuple(trace.addresses[at : at + width])
            varies = bool(varying) and (kind, location_number) in varying
            folded = FoldedInstruction(kind, location_number, width, varies)
            run.push(Item(self.number(folded), bases))
            at += width
            while run.shorten():
                pass
        return run.items

    def _timed_as(self, templates: Sequence[Instruction]) -> Sequence[int]:
        """Return for each template the first one that differs from it by a scalar's value alone.

        A value that a vector instruction takes from the scalar unit, or that this stores, changes
        no time, and where a kernel reads it from memory it is another one each time.
        """
        if templates is not self._templates or len(templates) != len(self._numbers_timed):
            firsts: dict[Instruction, int] = {}
            numbers = (
                firsts.setdefault(_without_value(template), number)
                for number, template in enumerate(templates)
            )
            self._templates, self._numbers_timed = templates, list(numbers)
        return self._numbers_timed

    def width(self, shape: int) -> int:
        """Return how many addresses an item of a shape has."""
        folded = self.shapes[shape]
        if isinstance(folded, FoldedInstruction):
            return folded.width
        return sum(self.width(part) for part in folded.body)

    def unfold(self, items: list[Item]) -> Iterator[tuple[FoldedInstruction, Bases]]:
        """Yield the instructions in order: the inverse of folding."""
        for item in items:
            yield from self._unfolded(item.shape, item.bases)

    def _unfolded(self, shape: int, bases: Bases) -> Iterator[tuple[FoldedInstruction, Bases]]:
        folded = self.shapes[shape]
        if isinstance(folded, FoldedInstruction):
            yield folded, bases
            return
        for trip in range(folded.trips):
            at = 0
            for part in folded.body:
                width = self.width(part)
                span = range(at, at + width)
                yield from self._unfolded(
                    part, tuple(bases[i] + trip * folded.steps[i] for i in span)
                )
                at += width


def _varying(trace: InstructionTrace, timed_as: Sequence[int]) -> set[tuple[int, int]]:
    """Return the templates, each with a location, that stand for several ones there."""
    first = np.array(timed_as, np.int64)
    if first.size == 0 or (first == np.arange(first.size)).all():
        return set()
    kinds = np.frombuffer(trace.kinds, np.uint32).astype(np.int64)
    wheres = np.frombuffer(trace.wheres, np.uint32).astype(np.int64)
    places = int(wheres.max(initial=0)) + 1
    # (timed template, location, recorded template) as one integer: distinct triples, reduced to
    # pairs. A pair that is left more than once had several recorded templates.
    pairs = np.unique((first[kinds] * places + wheres) * first.size + kinds) // first.size
    distinct, counts = np.unique(pairs, return_counts=True)
    several = distinct[counts > 1].tolist()
    return {divmod(pair, places) for pair in several}


def _without_value(template: Instruction) -> Instruction:
    """Return a template with no scalar's value, where a vector instruction or a store has one."""
    has_value = template.pipe is Pipe.V or isinstance(template, ScalarStore)
    if not has_value or not getattr(template, "value", 0):
        return template
    return replace(template, value=0)  # type: ignore[type-var]


class _Run:
    """The sequence so far, and where its end may fold.

    `ends` has the places of each shape; `due` the loops that a body behind them, of their length,
    would continue, by the index where it ends.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.items: list[Item] = []
        self._ends: dict[int, list[int]] = {}
        self._due: dict[int, set[int]] = {}

    def push(self, item: Item) -> None:
        """Take the next item."""
        index = len(self.items)
        self._ends.setdefault(item.shape, []).append(index)
        shape = self._folder.shapes[item.shape]
        if isinstance(shape, Repeat):
            self._due.setdefault(index + len(shape.body), set()).add(index)
        self.items.append(item)

    def _replace(self, count: int, item: Item) -> None:
        for _ in range(count):
            self._ends[self.items.pop().shape].pop()
        self.push(item)

    def shorten(self) -> bool:
        """Fold the end of the sequence once, if it can be."""
        return self._one_more_trip() or self._two_trips()

    def _one_more_trip(self) -> bool:
        last = len(self.items) - 1
        # `index` is a loop whose body is as long as what has come since: the same shapes, and each
        # address where the next trip would have it, base + trips * step, make it one more trip.
        for index in self._due.get(last, ()):
            loop = self.items[index]
            shape = self._folder.shapes[loop.shape]
            if not isinstance(shape, Repeat) or len(shape.body) != last - index:
                continue
            tail = self.items[index + 1 :]
            if tuple(item.shape for item in tail) != shape.body:
                continue
            bases = tuple(base for item in tail for base in item.bases)
            moved = zip(loop.bases, shape.steps, strict=True)
            if bases != tuple(base + shape.trips * step for base, step in moved):
                continue
            more = self._folder.number(Repeat(shape.trips + 1, shape.body, shape.steps))
            self._replace(len(tail) + 1, Item(more, loop.bases))
            return True
        return False

    def _two_trips(self) -> bool:
        items, last = self.items, len(self.items) - 1
        # The last item ends a trip, so an equal shape must have ended the trip before: only such
        # places are candidates, the nearest first, which gives the innermost loop.
        for index in reversed(self._ends[items[last].shape][:-1]):
            length = last - index
            if length > _LONGEST_BODY or index - length + 1 < 0:
                break
            first, second = items[index - length + 1 : index + 1], items[index + 1 :]
            if any(a.shape != b.shape for a, b in zip(first, second, strict=True)):
                continue
            start = tuple(base for item in first for base in item.bases)
            after = tuple(base for item in second for base in item.bases)
            steps = tuple(b - a for a, b in zip(start, after, strict=True))
            loop = self._folder.number(Repeat(2, tuple(i.shape for i in first), steps))
            self._replace(2 * length, Item(loop, start))
            return True
        return False
