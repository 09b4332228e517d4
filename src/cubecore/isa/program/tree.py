"""A core's program as a tree: instructions, loops, branches, scalars.

Leaves hold templates (all parameters but addresses) and symbolic addresses; cores that run the same
tree differ only in the values of its slots. A program is a value: building one executes nothing.

Grammar (``*``: any number, ``?``: at most one, ``|``: one of)::

    Launch     = TensorSpec* CoreProgram*          tensors of global memory, and each core's program
    CoreProgram = core sub Program slots           slots: Var -> (tensor, offset in bytes)
    Program    = Var* Node*                        the slots, and the body
    Node       = Issue | Loop | Branch | Assign | LoadScalar
    Issue      = Instruction Expr* (name Expr)*    template, addresses, late parameters
    Loop       = Var Expr Node*                    index = 0 .. trips - 1
    Branch     = Condition Node* Node*             then, otherwise
    Assign     = Var Expr
    LoadScalar = Var Mem type Expr                 Var takes what memory holds at the address
    Condition  = Expr (== | != | < | <= | > | >=) Expr
    Expr       = const (coefficient atom)*         their sum, an integer
    atom       = Var | Operation
    Operation  = (floordiv | mod | mul | min | max | function) Expr Expr

Order is that of the text. A Var has a value from its Assign, Loop or LoadScalar on, a slot from the
start on. `Expr` and `Condition` stand in `expr`, functions in `arithmetic`, launches in `launch`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any, Protocol

from cubecore.dtypes import ElementType
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.arithmetic import FUNCTIONS
from cubecore.isa.program.expr import Condition, Expr, Var


@dataclass(frozen=True, slots=True)
class Location:
    """The source location of an instruction in the author's file.

    `call` is the API's function that the line calls, `operands` are its arrays as the author named
    them, and `callers` are the calls that led there, the nearest first, where they are known; these
    do not tell locations apart.
    """

    file: str
    line: int
    function: str
    call: str = ""
    callers: tuple["Location", ...] = field(default=(), compare=False)
    operands: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return file:line (function)."""
        return f"{self.file}:{self.line} ({self.function})"


@dataclass(frozen=True, slots=True)
class AddressRule:
    """A stricter alignment of one operand's address, held when the instruction is issued.

    `operand` is the position among the template's operands; `subject` is what a finding names.
    """

    operand: int
    multiple_bytes: int
    subject: str


@dataclass(frozen=True, slots=True)
class Breach:
    """Bytes [start, end) of a tensor of `size_bytes` that an operand touches beyond the tensor.

    `operand` is the position among the template's operands, `offset` where its address lies in the
    tensor; `subject` is what a finding names.
    """

    operand: int
    subject: str
    tensor: str
    size_bytes: int
    offset: int
    start: int
    end: int

    @property
    def requirement(self) -> str:
        """The requirement that it does not meet."""
        return f"stay inside {self.tensor} (0 to {self.size_bytes} B)"

    @property
    def touched(self) -> str:
        """The bytes that it touches, from the tensor's beginning."""
        return f"bytes [{self.start}, {self.end})"


@dataclass(frozen=True, eq=False)
class Issue:
    """One instruction: a template, an address for each operand, and what is only known later.

    `addresses` are in bytes, in the order of the template's operands. `late` are parameters whose
    values depend on variables; they replace the template's own when the instruction is issued.
    `walk` says how a load that runs ahead of the loops around it walks its addresses: (position,
    trips) of each loop that it stands for, from the outermost; None where the loops around it do.
    `rules` are alignments beyond the template's own, of addresses that depend on variables;
    `breaches` are the bounds that it is known to leave. `varies`: it takes a value of the scalar
    unit that is not always the template's, where only its time is asked for.
    """

    template: Instruction
    addresses: tuple[Expr, ...]
    location: Location
    late: tuple[tuple[str, Expr], ...] = ()
    walk: tuple[tuple[Expr, int], ...] | None = None
    rules: tuple[AddressRule, ...] = ()
    breaches: tuple[Breach, ...] = ()
    varies: bool = False

    def bound(self, values: tuple[int, ...]) -> Instruction:
        """Return the template with the late parameters filled in, each distinct one made once."""
        return (
            _bind(self.template, tuple(n for n, _ in self.late), values)
            if values
            else (self.template)
        )


@lru_cache(maxsize=65536)
def _bind(template: Instruction, names: tuple[str, ...], values: tuple[int, ...]) -> Instruction:
    return replace(template, **dict(zip(names, values, strict=True)))  # type: ignore[type-var]


@dataclass(frozen=True, eq=False)
class Loop:
    """The body for index = 0 .. trips - 1."""

    index: Var
    trips: Expr
    body: tuple["Node", ...]


@dataclass(frozen=True, eq=False)
class Branch:
    """One of two bodies."""

    condition: Condition
    then: tuple["Node", ...]
    otherwise: tuple["Node", ...] = ()


@dataclass(frozen=True, eq=False)
class Assign:
    """A scalar takes a value."""

    target: Var
    value: Expr


@dataclass(frozen=True, eq=False)
class LoadScalar:
    """A scalar takes the integer that memory holds at an address.

    The core must have flushed what it issued before; a float element gives its bits. `cached`: a
    front end whose programs clean the data cache reads by it.
    """

    target: Var
    mem: Mem
    element: ElementType
    address: Expr
    location: Location
    cached: bool = False

    @property
    def by_cache(self) -> bool:
        """True if it loads a line of the scalar unit's data cache."""
        return self.cached and self.mem is Mem.GM


Node = Issue | Loop | Branch | Assign | LoadScalar


class Sink(Protocol):
    """The executor of a program: one handler for each leaf, and memory to read scalars from."""

    def handler(self, issue: Issue) -> Callable[..., None]:
        """Return the function that takes the leaf's late values and then its addresses."""
        ...

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        """Return the integer at `address`."""
        ...


@dataclass(frozen=True, eq=False)
class Program:
    """A tree and its slots: the variables that each core gives its own values."""

    body: tuple[Node, ...]
    slots: tuple[Var, ...] = ()
    name: str = "program"

    @cached_property
    def issues(self) -> tuple[Issue, ...]:
        """The leaves, in program order."""
        return tuple(_leaves(self.body))

    @cached_property
    def is_uniform(self) -> bool:
        """True if cores differ in addresses alone, each by a distance that never changes.

        So it is when slots stand in addresses only, and there in a straight line.
        """
        slots = set(self.slots)
        return not any(var in slots for var in _steering(self.body))

    @cached_property
    def _run(self) -> Callable[[Sequence[Any], Sequence[int], Sink], None]:
        lines, constants = _source(self)
        namespace: dict[str, Any] = {"K": constants, "with_slots": _with_slots, **FUNCTIONS}
        # Generated from integer expressions only: a walk then costs what Python's own loops cost.
        exec(compile("\n".join(lines), f"<{self.name}>", "exec"), namespace)  # noqa: S102
        run: Callable[[Sequence[object], Sequence[int], Sink], None] = namespace["run"]
        return run

    def run(self, sink: Sink, slots: Mapping[Var, int]) -> None:
        """Walk the tree in program order, calling the sink for each instruction.

        Loops are never unrolled into lists: what a walk needs does not grow with its length.
        """
        handlers = [sink.handler(issue) for issue in self.issues]
        self._run(handlers, [slots[var] for var in self.slots], sink)

    def listing(self, slots: Mapping[Var, int]) -> Iterator[tuple[Instruction, tuple[int, ...]]]:
        """Yield (template, addresses) flat, for short programs: a view, not the program."""
        collected: list[tuple[Instruction, tuple[int, ...]]] = []
        self.run(_Collector(collected), slots)
        yield from collected


class _Collector:
    """A sink that keeps every instruction."""

    def __init__(self, into: list[tuple[Instruction, tuple[int, ...]]]) -> None:
        self._into = into

    def handler(self, issue: Issue) -> Callable[..., None]:
        late = len(issue.late)

        def keep(*values: int) -> None:
            self._into.append((issue.bound(values[:late]), values[late:]))

        return keep

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        raise TypeError(f"a listing has no memory for {load.target.name} at {address}")


def nodes(body: Sequence[Node]) -> Iterator[Node]:
    """Yield every node of a tree, each before what is in it."""
    for node in body:
        yield node
        if isinstance(node, Loop):
            yield from nodes(node.body)
        elif isinstance(node, Branch):
            yield from nodes(node.then)
            yield from nodes(node.otherwise)


def _leaves(body: Sequence[Node]) -> Iterator[Issue]:
    return (node for node in nodes(body) if isinstance(node, Issue))


def _steering(body: Sequence[Node]) -> Iterator[Var]:
    """Yield the variables that decide more than where an address lies."""
    for node in body:
        if isinstance(node, Issue):
            for address in node.addresses:
                yield from address.bent_variables()
            for _, value in node.late:
                yield from value.variables()
        elif isinstance(node, Loop):
            yield from node.trips.variables()
            yield from _steering(node.body)
        elif isinstance(node, Branch):
            yield from node.condition.left.variables()
            yield from node.condition.right.variables()
            yield from _steering(node.then)
            yield from _steering(node.otherwise)
        elif isinstance(node, Assign):
            yield from node.value.variables()
        else:
            yield from node.address.variables()


class ProgramWriter:
    """Writes a tree as Python, node by node: what a leaf is, and a load, is a subclass's.

    Variables keep their names and numbers stand as they are, unless a subclass spells them.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def variable(self, var: Var) -> str:
        """Return a variable's name in the text."""
        return var.source()

    def number(self, number: int) -> str:
        """Return a number as it stands in the text."""
        return str(number)

    def spelled(self, value: Expr | Condition) -> str:
        """Return an expression or a condition as text."""
        return value.source(self)

    def body(self, body: Sequence[Node], indent: str) -> None:
        """Write nodes at an indentation."""
        if not body:
            self.lines.append(f"{indent}pass")
        for node in body:
            if isinstance(node, Issue):
                self.issue(node, indent)
            elif isinstance(node, Loop):
                self.loop(node, indent)
            elif isinstance(node, Branch):
                self._branch(node, indent)
            elif isinstance(node, Assign):
                self.assign(node, indent)
            else:
                self.load_scalar(node, indent)

    def issue(self, node: Issue, indent: str) -> None:
        """Write a leaf."""
        raise NotImplementedError

    def load_scalar(self, node: LoadScalar, indent: str) -> None:
        """Write a scalar that memory gives."""
        raise NotImplementedError

    def assign(self, node: Assign, indent: str) -> None:
        """Write an assignment."""
        self.lines.append(f"{indent}{self.variable(node.target)}={self.spelled(node.value)}")

    def loop(self, node: Loop, indent: str) -> None:
        """Write a loop."""
        index, trips = self.variable(node.index), self.spelled(node.trips)
        self.lines.append(f"{indent}for {index} in range({trips}):")
        self.body(node.body, indent + " ")

    def _branch(self, node: Branch, indent: str) -> None:
        self.lines.append(f"{indent}if {self.spelled(node.condition)}:")
        self.body(node.then, indent + " ")
        if node.otherwise:
            self.lines.append(f"{indent}else:")
            self.body(node.otherwise, indent + " ")


class _WalkWriter(ProgramWriter):
    """Writes the walk by a sink: handlers `h` by number, `K` for what else the text names."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.constants: list[Any] = []
        self.numbers = {id(issue): number for number, issue in enumerate(program.issues)}

    def constant(self, value: object) -> str:
        """Return what stands for an object."""
        self.constants.append(value)
        return f"K[{len(self.constants) - 1}]"

    def issue(self, node: Issue, indent: str) -> None:
        """Call the leaf's handler with its late values and its addresses."""
        values = [self.spelled(e) for e in (*(value for _, value in node.late), *node.addresses)]
        self.lines.append(f"{indent}h{self.numbers[id(node)]}({','.join(values)})")

    def load_scalar(self, node: LoadScalar, indent: str) -> None:
        """Ask the sink for the value."""
        target, at = self.variable(node.target), self.spelled(node.address)
        self.lines.append(f"{indent}{target}=sink.load_scalar({self.constant(node)},{at})")


def _source(program: Program) -> tuple[list[str], list[Any]]:
    """Return the program as Python: one function that calls a handler for each instruction."""
    # A loop of 8 trips over a copy from slot + 512 * index, with a barrier behind it, becomes
    #
    #   def run(handlers, slots, sink):
    #     v0, = slots
    #     h0=handlers[0]
    #     h1=handlers[1]
    #     for v1 in range(8):
    #      h0(0,v0+512*(v1))
    #      h1()
    #     return None
    #
    # Straight code at the top level is not compiled line by line but kept as a list (`_listed`).
    text = _WalkWriter(program)
    numbers, listed = text.numbers, set[int]()
    slots = {var: index for index, var in enumerate(program.slots)}
    outermost = [(node, _listed(node, slots)) for node in program.body]
    for are_listed, nodes in groupby(outermost, key=lambda pair: pair[1] is not None):
        if are_listed:
            run = [(numbers[id(node)], values_and_slots) for node, values_and_slots in nodes]
            listed |= {number for number, _ in run}
            text.lines.append(
                f"  for n,a in with_slots({text.constant(run)},slots): handlers[n](*a)"
            )
        else:
            text.body([node for node, _ in nodes], "  ")
    lines = ["def run(handlers, slots, sink):"]
    names = ",".join(var.source() for var in program.slots)
    if names:
        lines.append(f"  {names}, = slots")
    lines.extend(f"  h{n}=handlers[{n}]" for n in range(len(program.issues)) if n not in listed)
    return [*lines, *text.lines, "  return None"], text.constants


_ConstantsAndSlots = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]
"""An instruction's values but for slots, and which value each slot adds to: (value, slot)."""


def _listed(node: Node, slots: Mapping[Var, int]) -> _ConstantsAndSlots | None:
    """Return an instruction's late values and addresses if each is a constant, or that and a slot.

    In a program's outermost body those are listed: to compile a line takes a hundred calls' time.
    """
    if not isinstance(node, Issue):
        return None
    constants, added = [], []
    for index, value in enumerate((*(value for _, value in node.late), *node.addresses)):
        constants.append(value.const)
        if not value.terms:
            continue
        (atom, factor), *more = value.terms
        if more or factor != 1 or not isinstance(atom, Var) or atom not in slots:
            return None
        added.append((index, slots[atom]))
    return tuple(constants), tuple(added)


def _with_slots(
    run: Sequence[tuple[int, _ConstantsAndSlots]], slots: Sequence[int]
) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield the number and the values of each listed instruction."""
    for number, (constants, added) in run:
        if not added:
            yield number, constants
            continue
        values = list(constants)
        for index, slot in added:
            values[index] += slots[slot]
        yield number, values
