"""A program with larger tiles: what a kernel would issue that copied more at once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from cubecore.advice.kernel_rules.case import KernelCase, Leaf
from cubecore.advice.kernel_rules.changes.changed_programs import issues, rebuilt
from cubecore.advice.kernel_rules.changes.scaled import Scaler, repeated
from cubecore.isa.declare.instruction import Mem, Pipe
from cubecore.isa.declare.operand_overlap import span_bytes
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.tree import Issue, Location, Loop, Node, Program
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag, WaitFlag


def enlarged(
    program: Program, key: Leaf, factor: int, case: KernelCase, *, fits_l0: bool = True
) -> Program:
    """Return a program whose tiles are `factor` times as large.

    A tile is a trip of the innermost loop around `key`, or a part of one: there are as many less of
    them. What stands in the loop does so many times the work. A loop in it has so many times the
    trips, but one of loads into L0, which brings rows of M or N, or of vector instructions on whole
    tiles: each is so many times as long. So it is where the same lines stand outside, as a first or
    a last tile does. Where the larger tile does not fit L0 (`fits_l0`), what goes by L0 is done so
    many times, as before.
    """
    return _Enlarged(program, key, factor, case, fits_l0=fits_l0).program()


class _Enlarged:
    """Rewrites one program."""

    def __init__(
        self, program: Program, key: Leaf, factor: int, case: KernelCase, *, fits_l0: bool
    ) -> None:
        self._case, self._tile_bytes = case, key.issue.template.size_bytes
        self._program, self._factor, self._fits_l0 = program, factor, fits_l0
        self._tile = tile = key.loops[-1]
        self._scaler = Scaler(factor, case.chip)
        own = [node for node in tile.body if isinstance(node, Issue)]
        inner = [node for node in tile.body if isinstance(node, Loop)]
        self._direct = {id(issue.location) for issue in own}
        self._nested = {id(issue.location) for loop in inner for issue in issues(loop)}
        self._inside = sum(issue.location is key.location for issue in own) or 1
        self._kept = self._kept_trips(key)
        self._bases: dict[int, int] = {}
        self._steps: dict[int, int] = {}
        for issue in program.issues:
            self._note(issue)

    def _kept_trips(self, key: Leaf) -> int:
        """Return the trips that are left, so that all tiles together are as large as before."""
        entered = 1
        for loop in key.loops[:-1]:
            entered *= loop.trips.constant or 1
        outside = _runs(self._program.body, key.location, self._tile) / entered
        all_tiles = (self._tile.trips.constant or 0) * self._inside + outside
        return round((all_tiles / self._factor - outside) / self._inside)

    def _note(self, issue: Issue) -> None:
        """Note where a line's first tile lies in global memory, and how far apart tiles are."""
        at, key = _in_gm(issue), id(issue.location)
        if at is not None:
            self._bases[key] = min(at.const, self._bases.get(key, at.const))
            step = dict(at.terms).get(self._tile.index, 0)
            if step:
                self._steps[key] = step // self._inside

    def program(self) -> Program:
        """Return the program."""
        return rebuilt(self._program, self._change)

    def _change(self, node: Node) -> Iterable[Node] | None:
        if node is self._tile:
            body = tuple(self._scaled(self._tile.body))
            return (
                [replace(self._tile, trips=Expr(self._kept), body=body)] if self._kept > 0 else []
            )
        if isinstance(node, Issue):
            changed = id(node.location) in self._direct
            if changed and not self._fits_l0 and _works_on_l0(node):
                return [repeated(node, self._factor)]
            moved = self._outside(node) if changed else node
            step = self._steps.get(id(node.location), 0)
            return [self._scaler.issue(moved, step, changed=changed)]
        if isinstance(node, Loop):
            places = {id(issue.location) for issue in issues(node)}
            if places <= self._nested and not places & self._direct:
                return [self._longer(node)]
        return None

    def _longer(self, loop: Loop) -> Loop:
        into_l0 = all(issue.template.pipe is Pipe.MTE1 for issue in issues(loop))
        if into_l0 or any(map(self._covers_tile, issues(loop))):
            return replace(loop, body=tuple(self._scaled(loop.body)))
        return replace(loop, trips=Expr((loop.trips.constant or 0) * self._factor))

    def _covers_tile(self, issue: Issue) -> bool:
        """True of a vector instruction on as many bytes as a tile has."""
        if issue.template.pipe is not Pipe.V:
            return False
        template = self._case.resolved(issue)
        spans = (span_bytes(template, operand, 0) for operand in template.operands())
        return any(end - begin >= self._tile_bytes for begin, end in filter(None, spans))

    def _scaled(self, body: Sequence[Node]) -> Iterator[Node]:
        if self._fits_l0:
            yield from self._larger(body)
            return
        run: list[Node] = []
        behind: list[Node] = []
        for node in (*body, None):
            if node is not None and _is_by_l0(node):
                run.append(node)
            elif run and node is not None and _frees_l1(node):
                behind.append(node)
            else:
                if run:
                    index = Var("again", 1 << 30 | id(run[0]) & 0xFFFFFFF)
                    yield Loop(index, Expr(self._factor), tuple(run))
                yield from behind
                run, behind = [], []
                if node is not None:
                    yield from self._larger([node])

    def _larger(self, body: Sequence[Node]) -> Iterator[Node]:
        for node in body:
            if isinstance(node, Loop):
                yield self._longer(node)
            elif isinstance(node, Issue):
                step = self._steps.get(id(node.location), 0)
                yield self._scaler.issue(self._inside_moved(node), step)

    def _inside_moved(self, issue: Issue) -> Issue:
        """Return an instruction of the loop whose tiles lie so many times as far apart."""
        at = _in_gm(issue)
        if at is None:
            return issue
        base = self._bases[id(issue.location)]
        terms = tuple(
            (atom, by * self._factor if atom == self._tile.index else by) for atom, by in at.terms
        )
        return _moved(issue, Expr(base + (at.const - base) * self._factor, terms))

    def _outside(self, issue: Issue) -> Issue:
        """Return an instruction of a tile outside of the loop, at the start of a larger tile."""
        at, step = _in_gm(issue), self._steps.get(id(issue.location), 0) * self._factor
        if at is None or not step:
            return issue
        base = self._bases[id(issue.location)]
        return _moved(issue, Expr(base + (at.const - base) // step * step, at.terms))


_L0 = {"MTE1", "M"}


def _works_on_l0(issue: Issue) -> bool:
    template = issue.template
    flags = isinstance(template, (SetFlag, WaitFlag, PipeBarrier))
    return template.pipe.value in _L0 and not flags


def _is_by_l0(node: Node) -> bool:
    """True of loads into L0 and matmuls, and of what orders these two."""
    if isinstance(node, Loop):
        return all(map(_is_by_l0, node.body))
    if not isinstance(node, Issue):
        return False
    template = node.template
    if isinstance(template, (SetFlag, WaitFlag)):
        return {template.src, template.dst} <= _L0
    return template.on in _L0 if isinstance(template, PipeBarrier) else _works_on_l0(node)


def _frees_l1(node: Node) -> bool:
    """True of a flag by which MTE2 may fill L1 again."""
    template = node.template if isinstance(node, Issue) else None
    return isinstance(template, SetFlag) and (template.src, template.dst) == ("MTE1", "MTE2")


def _in_gm(issue: Issue) -> Expr | None:
    operands = zip(issue.template.operands(), issue.addresses, strict=True)
    return next((at for operand, at in operands if operand.mem is Mem.GM), None)


def _moved(issue: Issue, to: Expr) -> Issue:
    operands = zip(issue.template.operands(), issue.addresses, strict=True)
    addresses = tuple(to if operand.mem is Mem.GM else at for operand, at in operands)
    return replace(issue, addresses=addresses)


def _runs(body: Sequence[Node], where: Location, but: Loop, times: int = 1) -> int:
    """Return how often a line's instruction runs outside of a loop."""
    count = 0
    for node in body:
        if isinstance(node, Issue):
            count += times * (node.location is where)
        elif isinstance(node, Loop) and node is not but:
            count += _runs(node.body, where, but, times * (node.trips.constant or 0))
    return count
