"""Execution of a launch of trees: by BLAS where the matmuls are proven, else by reference."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from cubecore.chips.model import Chip
from cubecore.isa.program.launch import CoreGroup, CoreProgram, Launch
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.trace import InstructionTrace
from cubecore.isa.program.tree import Issue
from cubecore.machine.blas import prover
from cubecore.machine.blas.block_products import IrregularError
from cubecore.machine.blas.evaluate import commit, computed
from cubecore.machine.blas.operand_cache import OperandCache
from cubecore.machine.blas.stores import ProvenStore
from cubecore.machine.blas.threads import one_thread_each
from cubecore.machine.execute.core import Core
from cubecore.machine.execute.scheduler import RunOutcome, Task, run
from cubecore.machine.finding_kinds import USECHECK, USUAL, WATCHES
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.options import require_engine
from cubecore.machine.sanitize.finding_log import FindingLog
from cubecore.machine.sanitize.findings import SanitizerFinding
from cubecore.machine.sanitize.racecheck import Sanitizer
from cubecore.machine.tree_watch import TreeWatch


def run_launch(
    launch: Launch,
    chip: Chip,
    gm: GlobalMemory,
    bases: Mapping[str, int],
    engine: str = "fast",
    checks: frozenset[str] = USUAL,
    traces: dict[CoreId, InstructionTrace] | None = None,
    *,
    order: str = "program",
    ended: Callable[[Core], None] | None = None,
) -> tuple[RunOutcome, str]:
    """Run a launch whose tensors start at `bases`; return the outcome and the engine that ran it.

    `checks` are those that are on, of which usecheck is for kernels whose author issues every
    instruction: fast and blas, whose trees a generator wrote, leave it out. `engine` is one of
    `machine.options.ENGINES`; blas computes products that it proves, and runs program order alone.
    lockstep executes equal cores together. Everything else is the reference engine's, for all
    cores: so are other orders, and launches with `traces`, which take what each core issues.
    `ended` is called with each core at its end, but of those that BLAS computed.

    Notes
    -----
    1. `machine.blas.prover.prove` walks the tree of each group once, with provenance in place of
       bytes, and proves that the launch stores sums of products of its tensors.
    2. `machine.tree_watch.TreeWatch.finish` ends the watch of a group for races and flags.
    3. `machine.blas.evaluate.computed` computes each store by BLAS.

    Where nothing is proven, or another engine is asked for, `machine.execute.scheduler.run` runs
    everything core by core, and `machine.group.kernels.run_together` equal cores at once.
    """
    require_engine(engine)
    if engine in {"fast", "blas"}:
        checks -= {USECHECK}
    if engine in {"fast", "blas"} and traces is None and order == "program":
        try:
            proven = prover.prove(chip, gm, launch.groups(bases))
        except IrregularError:
            pass
        else:
            findings = _watch(launch, gm, [prover.group for prover in proven], checks)
            _perform(proven)
            issued = sum(prover.issued * len(prover.group.cores) for prover in proven)
            return RunOutcome(findings, issued), "blas"
    bodies = [(CoreId(core.core, core.sub), _body(core, bases, traces)) for core in launch.cores]
    tasks = [Task(core, body) for core, body in bodies]
    if engine == "lockstep" and traces is None and order == "program":
        from cubecore.machine.group.kernels import run_together

        return run_together(chip, gm, tasks, checks, ended), "lockstep"
    return run(chip, gm, tasks, checks=checks, order=order, ended=ended), "reference"


def _watch(
    launch: Launch, gm: GlobalMemory, groups: Sequence[CoreGroup], checks: frozenset[str]
) -> tuple[SanitizerFinding, ...]:
    """Return what racecheck and synccheck find in proven groups, each walked once."""
    if not checks & WATCHES:
        return ()
    log = FindingLog(checks)
    sanitizer = Sanitizer(gm, log, [CoreId(core.core, core.sub) for core in launch.cores])
    for group in groups:
        watch = TreeWatch(sanitizer, group)
        group.program.run(watch, group.slots[0])
        watch.finish()
    return tuple(log)


def _body(
    core: CoreProgram, bases: Mapping[str, int], traces: dict[CoreId, InstructionTrace] | None
) -> Callable[[Core], None]:
    if traces is None:
        return lambda state: core.program.run(state, core.addresses(bases))
    trace = traces[CoreId(core.core, core.sub)] = InstructionTrace()
    return lambda state: core.program.run(_Traced(state, trace), core.addresses(bases))


class _Traced:
    """A core whose trace takes what it issues (the sink protocol of programs)."""

    def __init__(self, core: Core, trace: InstructionTrace) -> None:
        self._core, self._trace = core, trace
        self.load_scalar = core.load_scalar

    def handler(self, issue: Issue) -> Callable[..., None]:
        follow, keep, late = self._core.handler(issue), self._trace.append, len(issue.late)

        def traced(*values: int) -> None:
            template = issue.bound(values[:late]) if late else issue.template
            keep(template, values[late:], issue.location)
            follow(*values)

        return traced


class _CoreStore(NamedTuple):
    """A store of a core: its place in its group, and its number in the launch."""

    store: ProvenStore
    row: int
    core: int


def _perform(proven: Sequence[prover.Prover]) -> None:
    """Compute every store of every core, on as many threads as there are processors.

    Atomic stores, which may meet, are committed in the order of the cores.
    """
    cache = OperandCache()
    work = [
        _CoreStore(store, index, number)
        for prover in proven
        for index, number in enumerate(core.core for core in prover.group.cores)
        for store in prover.stores
    ]
    factors = {
        id(factor): factor
        for prover in proven
        for store in prover.stores
        for tile in store.tiles()
        for pair in tile.terms
        for factor in pair
    }
    conversions = [part for factor in factors.values() for part in cache.prepare(factor)]

    def compute(item: _CoreStore) -> Callable[[], None]:
        store, row, _ = item
        values, defined = computed(store, row, cache)
        if store.atomic:
            return lambda: commit(store, row, values, defined)
        commit(store, row, values, defined)
        return lambda: None

    with (
        one_thread_each(),
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        for _ in pool.map(lambda convert: convert(), conversions):
            pass
        for finish in pool.map(compute, sorted(work, key=lambda item: item.core)):
            finish()
