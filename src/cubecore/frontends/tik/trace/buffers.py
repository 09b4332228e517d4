"""Local memories of a trace: scopes, lifetimes, and the exact sum of what is alive."""

from dataclasses import dataclass, field

from cubecore.chips.model import Chip
from cubecore.frontends.tik.trace.errors import refuse
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.expr import Expr
from cubecore.units import align_up

SCOPE_GM, SCOPE_UB, SCOPE_L1 = "global", "local.UB", "local.L1"
SCOPE_L1OUT, SCOPE_L0A, SCOPE_L0B, SCOPE_L0C = "local.L1OUT", "local.L0A", "local.L0B", "local.L0C"
MEMORIES: dict[str, Mem] = {
    SCOPE_GM: Mem.GM,
    SCOPE_UB: Mem.UB,
    SCOPE_L1: Mem.L1,
    SCOPE_L1OUT: Mem.L0C,
    SCOPE_L0A: Mem.L0A,
    SCOPE_L0B: Mem.L0B,
    SCOPE_L0C: Mem.L0C,
}
"""The memory that each TIK scope is (TIK, Tensor)."""
_ALIGN = {Mem.UB: 32, Mem.L1: 512, Mem.L0A: 512, Mem.L0B: 512, Mem.L0C: 1024}
"""The alignment of tensors, bytes (TIK, Tensor); L0C of float16 at 512."""
_SIZE_UNIT = 32
_SHOWN = 3


@dataclass(eq=False, slots=True)
class TensorBuffer:
    """The bytes of one tensor: a memory, where it starts, how long it is, whether it is alive.

    `size_bytes` is of one instance; in a loop of several threads there are `instances`. Where the
    run alone knows how long it, or one before it, is, `start` is the least that its start can be
    and its bytes reach the end of the memory, as far as is known here.
    """

    name: str
    mem: Mem
    base: Expr
    start: int
    size_bytes: int
    instances: int = 1
    alive: bool = True
    owner: "Buffers | None" = None
    until: int | None = None

    @property
    def end(self) -> int:
        """The byte behind those that it may touch."""
        return self.start + self.size_bytes * self.instances if self.until is None else self.until

    @property
    def unreached(self) -> bool:
        """True if the trace is where the program never comes: nothing is checked there."""
        return self.owner is not None and self.owner.unreached > 0


@dataclass(eq=False, slots=True)
class _Scope:
    marks: dict[Mem, int]
    late: dict[Mem, Expr]
    threads: int
    turn: Expr
    buffers: list[TensorBuffer] = field(default_factory=list)


class Buffers:
    """Hands out local memory as a stack: a scope gives back what was made in it."""

    def __init__(self, chip: Chip) -> None:
        self.capacity = {
            Mem.UB: chip.ub_user_bytes,
            Mem.L1: chip.l1_bytes,
            Mem.L0A: chip.l0a_bytes,
            Mem.L0B: chip.l0b_bytes,
            Mem.L0C: chip.l0c_bytes,
        }
        self._top = dict.fromkeys(self.capacity, 0)
        self._late = dict.fromkeys(self.capacity, Expr(0))
        self._scopes = [_Scope(dict(self._top), dict(self._late), 1, Expr(0))]
        self.peak = dict(self._top)
        self.unreached = 0

    def open(self, threads: int = 0, turn: Expr | None = None) -> None:
        """Enter a scope; `threads` above 1 give each tensor as many instances, taken in turn."""
        outer = self._scopes[-1]
        inherited = threads <= 1
        self._scopes.append(
            _Scope(
                dict(self._top),
                dict(self._late),
                outer.threads if inherited else threads,
                outer.turn if inherited or turn is None else turn,
            )
        )

    def close(self) -> None:
        """Leave the scope: what was made in it is gone."""
        scope = self._scopes.pop()
        self._top, self._late = scope.marks, scope.late
        for buffer in scope.buffers:
            buffer.alive = False

    def free(self, mem: Mem) -> tuple[int, int]:
        """Return where the free part of a memory starts, and its bytes."""
        start = align_up(self._top[mem], _ALIGN[mem])
        return start, self.capacity[mem] - start

    def allocate(self, name: str, mem: Mem, size_bytes: int) -> TensorBuffer:
        """Return a new buffer.

        Raises
        ------
        RequestError
            If the memory is exceeded; the message has the sum and the largest tensors.
        """
        # A stack allocator. `start` is a number, known here; `base` is the expression that
        # addresses use: it also has the instance of the thread whose turn it is, and what sizes
        # known late add.
        scope = self._scopes[-1]
        size = align_up(size_bytes, _SIZE_UNIT)
        start = align_up(self._top[mem], _ALIGN[mem])
        end = start + size * scope.threads
        base = Expr(start) + scope.turn * size if scope.threads > 1 else Expr(start)
        late = self._late[mem]
        until = None if late.constant == 0 else self.capacity[mem]
        buffer = TensorBuffer(
            name, mem, base + late, start, size, scope.threads, owner=self, until=until
        )
        scope.buffers.append(buffer)
        if end > self.capacity[mem]:
            raise self._full(mem, end)
        self._top[mem] = end
        self.peak[mem] = max(self.peak[mem], end)
        return buffer

    def allocate_late(self, name: str, mem: Mem, size_bytes: Expr) -> tuple[TensorBuffer, Expr]:
        """Return a new buffer of a size that only the run knows, and how far it moves later ones.

        The run checks that it fits. In a loop of several threads there is one of it.
        """
        # The static top does not move: the size is added to `_late`, an expression, rounded up to
        # the alignment at run time. Where later buffers overlap by this stack's count, they do not
        # in the run.
        unit, start = _ALIGN[mem], align_up(self._top[mem], _ALIGN[mem])
        room = self.capacity[mem] - start
        base = Expr(start) + self._late[mem]
        buffer = TensorBuffer(name, mem, base, start, room, owner=self, until=self.capacity[mem])
        self._scopes[-1].buffers.append(buffer)
        self._top[mem] = start
        return buffer, self._late[mem] + (size_bytes + unit - 1) // unit * unit

    def last(self, name: str, mem: Mem, size_bytes: int) -> TensorBuffer:
        """Return a memory's last bytes, whosever they are: what is put there must be put back."""
        start = self.capacity[mem] - size_bytes
        return TensorBuffer(name, mem, Expr(start), start, size_bytes, owner=self)

    def allocated_late(self, mem: Mem, moved: Expr) -> None:
        """Let later buffers of a memory start `moved` bytes further on."""
        self._late[mem] = moved

    def living(self) -> list[TensorBuffer]:
        """Return the buffers of every open scope."""
        return [buffer for scope in self._scopes for buffer in scope.buffers]

    def _full(self, mem: Mem, total: int) -> Exception:
        here = [b for b in self.living() if b.mem is mem]
        largest = sorted(here, key=lambda b: -b.size_bytes * b.instances)[:_SHOWN]
        listed = ", ".join(f"{b.name} {b.size_bytes * b.instances} B" for b in largest)
        return refuse(
            f"the tensors of {mem.label}",
            f"take at most {self.capacity[mem]} B together",
            f"{total} B",
            f"the largest are {listed}",
        )
