"""A launch without branches and variables, its loops in one another as one where they can be."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from cubecore.advice.kernel_rules.case import is_plain
from cubecore.advice.kernel_rules.changes.changed_programs import issues
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.launch import Launch
from cubecore.isa.program.trace import InstructionTrace, Names
from cubecore.isa.program.tree import Issue, LoadScalar, Loop, Node, Program
from cubecore.kernels.build.recorded_launch import RecordedTensor, Recording, recorded_launch
from cubecore.units import align_up

_APART = 4096
Keeps = Callable[[Issue, Sequence[int]], bool]
"""True for an instruction that is kept, given its addresses."""


def plain_launch(launch: Launch, name: str) -> Launch:
    """Return a launch whose loops have constant trips, and which takes as long.

    A program that branches, or has variables, is recorded and folded anew.

    Raises
    ------
    TypeError
        If a program reads memory: what it does then is known where it was recorded.
    """
    recorded = launch if is_plain(launch) else _recorded(launch, name)
    flat = {
        program: Program(tuple(_flat(program.body)), program.slots, program.name)
        for program in recorded.programs
    }
    cores = (replace(core, program=flat[core.program]) for core in recorded.cores)
    return replace(recorded, cores=tuple(cores))


def _flat(body: Sequence[Node]) -> Iterator[Node]:
    """Yield nodes, with a loop in a loop as one where addresses move evenly."""
    for node in body:
        if not isinstance(node, Loop):
            yield node
            continue
        inner = tuple(_flat(node.body))
        only = inner[0]
        if len(inner) == 1 and isinstance(only, Loop):
            together = _as_one(node, only)
            if together is not None:
                yield together
                continue
        yield replace(node, body=inner)


def _as_one(outer: Loop, inner: Loop) -> Loop | None:
    """Return a loop for a loop in a loop; None where addresses move otherwise."""
    trips = inner.trips.constant or 0
    steps = [
        (terms.get(outer.index, 0), terms.get(inner.index, 0))
        for issue in issues(inner)
        for terms in (dict(address.terms) for address in issue.addresses)
    ]
    if any(by_outer != trips * by_inner for by_outer, by_inner in steps):
        return None

    def moved(node: Node) -> Node:
        if isinstance(node, Loop):
            return replace(node, body=tuple(map(moved, node.body)))
        if not isinstance(node, Issue):
            return node
        addresses = tuple(
            Expr(at.const, tuple(term for term in at.terms if term[0] != outer.index))
            for at in node.addresses
        )
        return replace(node, addresses=addresses)

    count = Expr((outer.trips.constant or 0) * trips)
    return Loop(inner.index, count, tuple(map(moved, inner.body)))


def _recorded(launch: Launch, name: str) -> Launch:
    return recorded_anew(launch, name, lambda *_: True)


def recorded_anew(
    launch: Launch, name: str, keeps: Callable[[Issue, Sequence[int]], bool]
) -> Launch:
    """Return a launch of what cores issue that `keeps` says true of, given its addresses.

    `keeps` is asked core by core, in the order in which a core issues.

    Raises
    ------
    TypeError
        If a program reads memory: what it does then is known where it was recorded.
    """
    bases, names = bases_of(launch), Names()
    recordings = []
    for core in launch.cores:
        recorder = FilteringRecorder(names, keeps)
        core.program.run(recorder, core.addresses(bases))
        recordings.append(Recording(core.core, core.sub, recorder.trace))
    tensors = [RecordedTensor(tensor, bases[tensor.name]) for tensor in launch.tensors]
    plain = recorded_launch(name, tensors, recordings)
    return replace(launch, cores=plain.cores)


def bases_of(launch: Launch) -> dict[str, int]:
    """Return an address for each tensor, all apart from each other."""
    bases, address = dict[str, int](), _APART
    for tensor in launch.tensors:
        bases[tensor.name] = address
        address += align_up(tensor.size_bytes, _APART) + _APART
    return bases


class FilteringRecorder:
    """A sink that records each instruction that `keeps` says true of, given its addresses."""

    def __init__(self, names: Names, keeps: Keeps) -> None:
        self.trace, self._keeps = InstructionTrace(names), keeps

    def handler(self, issue: Issue) -> Callable[..., None]:
        """Return the function that takes an instruction's late values and addresses."""
        late, where = len(issue.late), issue.location

        def keep(*values: int) -> None:
            if self._keeps(issue, values[late:]):
                self.trace.append(issue.bound(values[:late]), values[late:], where)

        return keep

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        """Refuse: the program reads what is not there."""
        raise TypeError(f"{load.target.name} is read from memory at {address}")
