"""The tree that a trace grows: variables, bodies, branches, instructions with symbolic operands."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, replace
from functools import lru_cache
from typing import Any

from cubecore.chips.model import Chip
from cubecore.errors import RequestError
from cubecore.frontends.tik.trace.buffers import Buffers
from cubecore.frontends.tik.trace.early_exit import TracedBody, leave
from cubecore.frontends.tik.trace.errors import located, refuse, unable, user_location
from cubecore.frontends.tik.trace.sync import Synchroniser, Touch
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.isa.declare.instruction import Instruction, Mem, Operand, Pipe
from cubecore.isa.declare.operand_overlap import touched_span
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.check import template_violations
from cubecore.isa.program.expr import Condition, Expr, Var
from cubecore.isa.program.tree import (
    AddressRule,
    Assign,
    Branch,
    Breach,
    Issue,
    Location,
    Loop,
    Node,
)
from cubecore.isa.scalar.sync import JOINED_PAIRS, PipeBarrier, pairs
from cubecore.isa.vector.common.mask import SetMaskCount, SetMaskNorm, SetVectorMask
from cubecore.isa.vector.common.repeated import Repeated


class KernelTrace:
    """One kernel being built."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.buffers = Buffers(chip)
        self.sync = Synchroniser(self._insert, self._pairs)
        self.memories: set[Mem] = set()
        self.slots: dict[str, Var] = {}
        self._variables = 0
        self.core, self.cores = self.variable("core"), self.variable("cores")
        self._open = [TracedBody()]
        self._ended: Var | None = None
        self._mask: tuple[Expr, Expr] | None = None
        self._location: Location | None = None
        self._branches: list[tuple[TracedBody, int, list[tuple[Expr, tuple[Node, ...]]]]] = []

    def variable(self, name: str) -> Var:
        """Return a new variable."""
        self._variables += 1
        return Var(name, self._variables - 1)

    def slot(self, name: str) -> Var:
        """Return the variable that holds where a tensor of global memory starts."""
        if name not in self.slots:
            self.slots[name] = self.variable(name)
        return self.slots[name]

    @property
    def body(self) -> tuple[Node, ...]:
        """The whole tree."""
        assert len(self._open) == 1, "a loop or branch is still open"
        begin = () if self._ended is None else (Assign(self._ended, Expr(0)),)
        return (*begin, *self._open[0].closed())

    def append(self, node: Node) -> None:
        """Add a node at the current place."""
        self._open[-1].nodes.append(node)

    def _insert(self, template: Instruction) -> None:
        self.append(Issue(template, (), self._location or user_location()))

    def _pairs(self) -> frozenset[tuple[str, str]]:
        if self.chip.joins_vector:
            return JOINED_PAIRS
        return pairs(aic=Mem.UB not in self.memories)

    # --- bodies

    @contextmanager
    def loop(self, name: str, trips: Expr) -> Iterator[Expr]:
        """Repeat what is issued inside; gives the index."""
        # State that is known inside straight-line code is forgotten at each edge of a loop: pipes
        # are joined, and the mask counts as unknown, since the body may run after itself.
        self.sync.barrier()
        index = self.variable(name)
        self._open.append(TracedBody(loops=True))
        self._mask = None
        yield Expr.of(index)
        self.sync.barrier()
        self._mask = None
        closing = self._open.pop()
        if closing.breaks is not None:
            self.assign(closing.breaks, Expr(0))
        if body := closing.closed():
            self.append(Loop(index, trips, body))

    def leave_loop(self) -> None:
        """Leave the innermost loop.

        Raises
        ------
        RequestError
            If no loop is open.
        """
        loops = [index for index, body in enumerate(self._open) if body.loops]
        if not loops:
            raise unable("tik_break", "tik_break is outside a for_range")
        left = self._open[loops[-1] :]
        if left[0].breaks is None:
            left[0].breaks = self.variable("broken")
        self._leave(left, left[0].breaks)

    def leave_program(self) -> None:
        """End the kernel on this core."""
        if self._ended is None:
            self._ended = self.variable("ended")
        self._leave(self._open, self._ended)

    def _leave(self, bodies: Sequence[TracedBody], variable: Var) -> None:
        self.sync.barrier()
        self.assign(variable, Expr(1))
        leave(bodies, variable)

    @contextmanager
    def _alternative(
        self,
        chain: list[tuple[Expr, tuple[Node, ...]]],
        condition: Expr | None,
        *,
        in_outer: bool = False,
    ) -> Iterator[None]:
        """Add what is issued inside to a chain of branches; None is a condition that holds.

        Of a branch that is known never to be taken nothing is checked or kept.
        """
        # `unreached`: a condition before is always true, or this one is never. Programs have such
        # branches with accesses that would be refused; they are traced for their Python effects and
        # dropped.
        taken = Expr(1) if condition is None else condition
        settled = any(earlier.constant not in {None, 0} for earlier, _ in chain)
        unreached = settled or taken.constant == 0
        before = self.sync.state.copy()
        self._open.append(TracedBody(in_outer=in_outer))
        self._mask = None
        self.buffers.unreached += unreached
        yield
        self.buffers.unreached -= unreached
        self.sync.barrier()
        self.sync.state = before
        self._mask = None
        body = self._open.pop().closed()
        chain.append((taken, () if unreached else body))

    @contextmanager
    def branch(self, condition: Expr | None) -> Iterator[None]:
        """Do what is issued inside if the condition holds.

        None, or a condition right behind another branch's end, goes on with that branch.
        """
        chain: list[tuple[Expr, tuple[Node, ...]]] = []
        with self._alternative(chain, condition):
            yield
        here = self._open[-1]
        self._branches = [b for b in self._branches if b[0] is not here]
        self._branches.append((here, len(here.nodes), chain))
        here.nodes.append(_chained(chain))

    @contextmanager
    def otherwise(self, condition: Expr | None, call: str) -> Iterator[None]:
        """Go on with the branch that ended right before: else (None), or else if."""
        here = self._open[-1]
        chain = next((b for b in self._branches if b[0] is here), None)
        if chain is None or chain[1] != len(here.nodes) - 1:
            raise unable(call, f"{call} does not follow an if_scope at the same level")
        with self._alternative(chain[2], condition, in_outer=True):
            yield
        here.nodes[chain[1]] = _chained(chain[2])
        if condition is None:
            self._branches.remove(chain)

    def assign(self, target: Var, value: Expr) -> None:
        """Give a variable a value."""
        self.append(Assign(target, value))

    # --- instructions

    def mask(self, high: Expr, low: Expr) -> None:
        """Set the vector mask, if it is not what it is known to be."""
        if self._mask == (high, low):
            return
        constant = high.constant is not None and low.constant is not None
        self._mask = (high, low) if constant else None  # a Scalar may change
        self.issue(SetVectorMask, {"mask_high": high, "mask_low": low}, ())

    def count(self, elements: Expr | None) -> None:
        """Let the mask count the elements of all repeats; None lets it name lanes again."""
        self._mask = None
        if elements is None:
            self.issue(SetMaskNorm, {}, ())
            return
        self.issue(SetMaskCount, {}, ())
        self.issue(SetVectorMask, {"mask_high": Expr(0), "mask_low": elements}, ())

    def issue(
        self,
        kind: type[Instruction],
        parameters: Mapping[str, object],
        operands: Sequence[Tensor],
        call: str = "",
        addresses: Sequence[Expr] | None = None,
        touches: Sequence[Touch] = (),
        rules: Sequence[AddressRule] = (),
    ) -> None:
        """Issue an instruction on tensors in the order of its operands.

        `rules` are held when it runs.

        Raises
        ------
        RequestError
            If a parameter is out of its range, or an operand lies beyond its tensor, as far as the
            trace can tell.
        """
        # 1. Check what is known of the parameters; 2. collect what the operands touch, for the
        # flags, and check where they lie; 3. insert flags and barriers; 4. append the leaf, with
        # late parameters, address rules and breaches that only the run can report.
        template, late = _template(kind, parameters)
        if broken := [v for v in template_violations(template, self.chip) if not _is_late(v, late)]:
            raise RequestError(
                [located(replace(v, subject=_named(v.subject, kind, call))) for v in broken]
            )
        operand_addresses = (
            tuple(t.address for t in operands) if addresses is None else tuple(addresses)
        )
        touched = list(touches)
        for tensor, operand in zip(operands, template.operands(), strict=False):
            touched.append(_touch(tensor, operand.access.writes))
        masked = None if late else self._masked(template)
        breaches: list[Breach] = []
        for tensor, operand, address in zip(
            operands, template.operands(), operand_addresses, strict=False
        ):
            self.memories.add(operand.mem)
            if tensor.mem is not operand.mem:
                subject = f"{call or template.name}.{operand.name}"
                raise refuse(subject, f"lie in {operand.mem.label}", tensor.mem.label)
            if not late:
                _require_aligned(template, tensor, operand, address, call)
            if masked is not None:
                breach = self._left(masked, tensor, operand, address, call)
                breaches += [] if breach is None else [breach]
        if template.register:
            sets_register = type(template).leaves is not Instruction.leaves
            touched.append(((template.register, 0, 1), sets_register))
        self._location = user_location(call, tuple(tensor.name for tensor in operands))
        self.sync.before(template.pipe.value, touched)
        left, held = tuple(late.items()), (tuple(rules), tuple(breaches))
        self.append(Issue(template, operand_addresses, self._location, left, None, *held))
        self._location = None

    def _left(
        self, template: Instruction, tensor: Tensor, operand: Operand, address: Expr, call: str
    ) -> Breach | None:
        """Return how an operand leaves its tensor, where the trace knows its address.

        In UB that is a finding of the run, since programs step over tensors there on purpose;
        elsewhere, and beyond UB, it is refused.
        """
        buffer = tensor.buffer
        offset = (address - buffer.base).constant  # of the instance whose turn it is
        touched = None if tensor.mem is Mem.GM else touched_span(template, operand.name)
        if offset is None or touched is None:
            return None
        low, high = template.element(operand).extent_bytes(*touched)
        start = buffer.start + offset
        end = start + (buffer.instances - 1) * buffer.size_bytes
        if offset + low >= 0 and offset + high <= tensor.buffer.size_bytes:
            return None
        breach = Breach(
            template.operands().index(operand),
            f"{call or template.name}.{operand.name}",
            tensor.name,
            tensor.buffer.size_bytes,
            offset,
            offset + low,
            offset + high,
        )
        memory_bytes = self.buffers.capacity[tensor.mem]
        if tensor.mem is Mem.UB and start + low >= 0 and end + high <= memory_bytes:
            return breach
        raise refuse(breach.subject, breach.requirement, breach.touched)

    def _masked(self, template: Instruction) -> Instruction | None:
        """Return a template under the mask, None if only the run knows it."""
        if not isinstance(template, Repeated):
            return None if template.takes_registers else template
        if self._mask is None:
            return None
        high, low = (word.constant or 0 for word in self._mask)
        return _under(template, high, low)

    def join(self) -> None:
        """Join all pipes, whatever is known to be under way."""
        self._insert(PipeBarrier(on=Pipe.ALL.value))
        self.sync.forget()

    def touch(self, pipe: str, touches: Sequence[Touch]) -> None:
        """Order something that is no instruction after what it needs."""
        self.sync.before(pipe, touches)


def _chained(chain: Sequence[tuple[Expr, tuple[Node, ...]]]) -> Branch:
    otherwise: tuple[Node, ...] = ()
    for condition, body in reversed(chain):
        otherwise = (Branch(Condition.of(condition, "!=", 0), body, otherwise),)
    (branch,) = otherwise
    assert isinstance(branch, Branch)
    return branch


def _template(
    kind: type[Instruction], parameters: Mapping[str, object]
) -> tuple[Instruction, dict[str, Expr]]:
    """Return the template, and the parameters whose values only the run knows."""
    values: dict[str, object] = {}
    late: dict[str, Expr] = {}
    for name, value in parameters.items():
        if isinstance(value, Expr) and value.constant is None:
            late[name] = value
        else:
            values[name] = value.constant if isinstance(value, Expr) else value
    for f in fields(kind) if late else ():  # type: ignore[arg-type]
        if f.name in late and f.default is MISSING:
            values[f.name] = f.metadata.get("low", 0)
    return _instruction(kind, tuple(values.items())), late  # type: ignore[arg-type]  # a class has a hash


@lru_cache(maxsize=65536)
def _instruction(
    kind: type[Instruction], parameters: tuple[tuple[str, object], ...]
) -> Instruction:
    """Return a template, the same one for the same parameters: it is a key of every cache."""
    return kind(**dict(parameters))


@lru_cache(maxsize=4096)
def _under(template: Instruction, high: int, low: int) -> Instruction:
    """Return a template as it is under a mask."""
    return template.resolved(Registers(mask_high=high, mask_low=low))


def _is_late(violation: Any, late: Mapping[str, Expr]) -> bool:
    return violation.subject.split(".")[-1] in late


def _named(subject: str, kind: type[Instruction], call: str) -> str:
    name = kind.name
    return f"{call}{subject[len(name) :]}" if call and subject.startswith(name) else subject


def _touch(tensor: Tensor, writes: bool) -> Touch:
    buffer = tensor.buffer
    if buffer.mem is Mem.GM:
        return (f"GM {buffer.name}", 0, 1), writes
    return (buffer.mem.label, buffer.start, buffer.end), writes


def touch_of(tensor: Tensor, *, writes: bool) -> Touch:
    """Return what an access to a tensor touches."""
    return _touch(tensor, writes)


def _require_aligned(
    template: Instruction, tensor: Tensor, operand: Operand, address: Expr, call: str
) -> None:
    """Refuse an operand that starts where its memory takes none, where the trace knows it."""
    if (
        tensor.mem is not Mem.GM
        and address.constant is not None
        and address.constant % operand.alignment
    ):
        need = f"start at a multiple of {operand.alignment} B in {tensor.mem.label}"
        got = f"{address.constant - tensor.buffer.start} B into {tensor.name}"
        raise refuse(f"{call or template.name}.{operand.name}", need, got)
