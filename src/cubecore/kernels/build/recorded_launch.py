"""A recorded launch as trees: what cores issued, folded, for the clock to walk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.program.trace import InstructionTrace
from cubecore.isa.program.tree import Issue, Loop, Node, Program
from cubecore.kernels.build.fold_trace import Bases, FoldedInstruction, Folder, Item


@dataclass(frozen=True, slots=True)
class RecordedTensor:
    """A tensor of the launch, and where global memory had it when it was recorded."""

    spec: TensorSpec
    address: int


@dataclass(frozen=True, slots=True)
class Recording:
    """The instructions that one core of a launch issued."""

    core: int
    sub: int
    trace: InstructionTrace


def recorded_launch(
    name: str, tensors: Sequence[RecordedTensor], recordings: Sequence[Recording]
) -> Launch:
    """Return the launch that cores recorded; cores that differ by constant distances share a tree.

    Values that kernels read from memory are those of the recording.
    """
    writer = _Writer(name, tuple(tensors))
    cores = tuple(writer.core(recording) for recording in recordings)
    return Launch(tuple(tensor.spec for tensor in tensors), cores)


def with_cores(launch: Launch, cores: Sequence[tuple[int, int]]) -> Launch | None:
    """Return a launch on more cores than it was recorded on; None if that cannot be told.

    A core (number, part) between recorded ones runs the tree of the one before it. How far it is in
    each tensor lies on the line through two recorded cores with that tree.
    """
    known = {(each.core, each.sub): each for each in launch.cores}
    made = []
    for number, sub in cores:
        own = known.get((number, sub))
        like = own or _before(launch.cores, number, sub)
        if like is None:
            return None
        if own is None:
            distances = _on_line(launch.cores, like, number)
            if distances is None:
                return None
            slots = {var: (name, distances[name]) for var, (name, _) in like.slots.items()}
            own = CoreProgram(number, like.program, slots, sub)
        made.append(own)
    return replace(launch, cores=tuple(made))


def _before(cores: Sequence[CoreProgram], number: int, sub: int) -> CoreProgram | None:
    """Return the last recorded core of a part before a number."""
    parts = [each for each in cores if each.sub == sub and each.core < number]
    return max(parts, key=lambda each: each.core, default=None)


def _on_line(cores: Sequence[CoreProgram], like: CoreProgram, number: int) -> dict[str, int] | None:
    """Return the distances of a core by its number, given one of its tree."""
    others = [
        each
        for each in cores
        if each.program is like.program and each.sub == like.sub and each.core != like.core
    ]
    if not others:
        return None
    other = others[0]
    steps, width = number - like.core, other.core - like.core
    found = {}
    for var, (name, distance) in like.slots.items():
        moved = (other.slots[var][1] - distance) * steps
        if moved % width:
            return None
        found[name] = distance + moved // width
    return found


class _Writer:
    """Writes trees over slots: one for each tensor."""

    def __init__(self, name: str, tensors: tuple[RecordedTensor, ...]) -> None:
        self.name, self._tensors = name, tensors
        self.slots = tuple(Var(p.spec.name, n) for n, p in enumerate(tensors))
        self._built: list[tuple[InstructionTrace, list[Item], Program]] = []
        self._unfolded: list[tuple[_TraceAddresses, Program]] = []
        self._folder = Folder()

    def core(self, recording: Recording) -> CoreProgram:
        """Return one core's share."""
        trace = recording.trace
        addresses = _TraceAddresses(trace, [tensor.address for tensor in self._tensors])
        for its_addresses, program in self._unfolded:
            distances = addresses.distances(its_addresses)
            if distances is not None:
                return self._share(recording, program, distances)
        items = self._folder.fold(trace)
        for its_trace, its_items, program in self._built:
            distances = self._distances(its_trace, its_items, trace, items)
            if distances is not None:
                return self._share(recording, program, distances)
        program = _Tree(self, trace, self._folder).program(items)
        self._built.append((trace, items, program))
        self._unfolded.append((addresses, program))
        return self._share(recording, program, [0] * len(self._tensors))

    def _share(
        self, recording: Recording, program: Program, distances: Sequence[int]
    ) -> CoreProgram:
        slots = {
            var: (tensor.spec.name, distance)
            for var, tensor, distance in zip(self.slots, self._tensors, distances, strict=True)
        }
        return CoreProgram(recording.core, program, slots, recording.sub)

    def _distances(
        self,
        its_trace: InstructionTrace,
        its_items: list[Item],
        trace: InstructionTrace,
        items: list[Item],
    ) -> list[int] | None:
        """Return how far apart two cores are in each tensor; None if they differ otherwise."""
        if (its_trace.templates, its_trace.locations) != (trace.templates, trace.locations):
            return None
        if [item.shape for item in its_items] != [item.shape for item in items]:
            return None
        distance_of: dict[int, int] = {}
        for its_item, item in zip(its_items, items, strict=True):
            mems = self._memories(trace, item.shape)
            for mem, base, address in zip(mems, its_item.bases, item.bases, strict=True):
                if mem is not Mem.GM:
                    if base != address:
                        return None
                    continue
                tensor = self.tensor_at(base)
                if tensor != self.tensor_at(address):
                    return None
                if tensor >= 0 and distance_of.setdefault(tensor, address - base) != address - base:
                    return None
        return [distance_of.get(number, 0) for number in range(len(self._tensors))]

    def _memories(self, trace: InstructionTrace, shape: int) -> list[Mem]:
        """Return the memory of each address of an item."""
        folded = self._folder.shapes[shape]
        if isinstance(folded, FoldedInstruction):
            return [o.mem for o in trace.templates[folded.kind].operands()]
        return [mem for part in folded.body for mem in self._memories(trace, part)]

    def tensor_at(self, address: int) -> int:
        """Return the number of the last tensor that starts at or before an address, or -1."""
        starts = [n for n, p in enumerate(self._tensors) if p.address <= address]
        return max(starts, key=lambda n: self._tensors[n].address, default=-1)

    def expression(self, mem: Mem, address: int) -> Expr:
        """Return an address: in global memory, a distance from its tensor's slot."""
        tensor = self.tensor_at(address) if mem is Mem.GM else -1
        if tensor < 0:
            return Expr(address)
        return Expr.of(self.slots[tensor]) + (address - self._tensors[tensor].address)


class _TraceAddresses:
    """The addresses of a trace, and the tensor that each lies in: -1 for none, or another memory.

    Most cores issue what another one does at other addresses: they need not be folded to know it.
    """

    def __init__(self, trace: InstructionTrace, starts: Sequence[int]) -> None:
        self.trace = trace
        self.values = np.frombuffer(trace.addresses, np.int64)
        kinds = np.frombuffer(trace.kinds, np.uint32).astype(np.int64)
        mems = [[o.mem is Mem.GM for o in t.operands()] for t in trace.templates]
        widths = np.array([len(each) for each in mems], np.int64)
        firsts = np.cumsum(widths) - widths
        # The operand of each address, as a number over those of all templates in turn.
        count, number = widths[kinds], np.arange(self.values.size)
        begins = np.repeat(np.cumsum(count) - count, count)
        self._operands = np.repeat(firsts[kinds], count) + number - begins
        is_global = np.array([each for one in mems for each in one], np.bool_)[self._operands]
        order = np.argsort(np.array(starts, np.int64), kind="stable")
        at = np.searchsorted(np.array(starts, np.int64)[order], self.values, side="right") - 1
        tensors = order[at] if order.size else at
        self.tensors = np.where(is_global & (at >= 0), tensors, -1)
        wheres = np.frombuffer(trace.wheres, np.uint32).astype(np.int64)
        self._wheres, self._count = np.repeat(wheres, count), len(starts)

    def distances(self, other: "_TraceAddresses") -> list[int] | None:
        """Return how far these are from another's in each tensor; None if they differ otherwise."""
        one, its = self.trace, other.trace
        if (one.kinds, one.wheres) != (its.kinds, its.wheres) or other.crosses_tensors:
            return None
        if (one.templates, one.locations) != (its.templates, its.locations):
            return None
        if not np.array_equal(self.tensors, other.tensors):
            return None
        apart = self.values - other.values
        found = np.zeros(self._count + 1, np.int64)  # the last one is that of no tensor
        found[self.tensors] = apart
        found[-1] = 0
        return found[:-1].tolist() if np.array_equal(found[self.tensors], apart) else None

    @cached_property
    def crosses_tensors(self) -> bool:
        """True if an operand of an instruction goes from one tensor to another: a loop may, too."""
        places = self._operands * (int(self._wheres.max(initial=0)) + 1) + self._wheres
        pairs = np.unique(places * (self._count + 1) + self.tensors + 1)
        return bool(np.unique(pairs // (self._count + 1)).size < pairs.size)


class _Tree:
    """Writes the tree of one core."""

    def __init__(self, writer: _Writer, trace: InstructionTrace, folder: Folder) -> None:
        self._writer, self._trace, self._folder = writer, trace, folder
        self._variables = len(writer.slots)

    def program(self, items: Sequence[Item]) -> Program:
        """Return the tree of some items."""
        body = [node for item in items for node in self._nodes(item.shape, item.bases, {})]
        return Program(tuple(body), self._writer.slots, self._writer.name)

    def _nodes(self, shape: int, bases: Bases, moves: Mapping[Var, Bases]) -> list[Node]:
        """Return an item's nodes; `moves` is how far its addresses move with each loop around."""
        folded = self._folder.shapes[shape]
        if isinstance(folded, FoldedInstruction):
            return [self._issue(folded, bases, moves)]
        index = Var("trip", self._variables)
        self._variables += 1
        body: list[Node] = []
        at = 0
        for part in folded.body:
            end = at + self._folder.width(part)
            inner_moves = {var: steps[at:end] for var, steps in moves.items()}
            inner_moves[index] = folded.steps[at:end]
            body.extend(self._nodes(part, bases[at:end], inner_moves))
            at = end
        return [Loop(index, Expr(folded.trips), tuple(body))]

    def _issue(self, leaf: FoldedInstruction, bases: Bases, moves: Mapping[Var, Bases]) -> Issue:
        template = self._trace.templates[leaf.kind]
        addresses = []
        for index, operand in enumerate(template.operands()):
            address = self._writer.expression(operand.mem, bases[index])
            for var, steps in moves.items():
                address = address + Expr.of(var) * steps[index]
            addresses.append(address)
        where = self._trace.locations[leaf.location]
        return Issue(template, tuple(addresses), where, varies=leaf.varies)
