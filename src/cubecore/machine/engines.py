"""Running a launch: the fast engine where it proves what the cores compute, else the reference."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from threadpoolctl import threadpool_limits

from cubecore.chips.model import Chip
from cubecore.errors import refuse
from cubecore.isa.launch import CoreProgram, Launch
from cubecore.machine import fast
from cubecore.machine.core import Core, CoreId
from cubecore.machine.memory import GlobalMemory
from cubecore.machine.products import IrregularError
from cubecore.machine.scheduler import Outcome, Task, run
from cubecore.machine.shadows import Shadows
from cubecore.machine.stores import Store, commit, computed

ENGINES = ("fast", "reference")


def run_launch(
    launch: Launch, chip: Chip, gm: GlobalMemory, bases: Mapping[str, int], engine: str = "fast"
) -> tuple[Outcome, str]:
    """Run a launch whose tensors start at `bases`; return the outcome and the engine that ran it.

    The fast engine falls back to the reference engine for all cores as soon as one group of them is
    not proven; nothing has been written by then.
    """
    if engine not in ENGINES:
        raise refuse("engine", f"be {' or '.join(ENGINES)}", repr(engine))
    if engine == "fast":
        try:
            proven = fast.prove(chip, gm, launch.groups(bases))
        except IrregularError:
            pass
        else:
            _perform(proven)
            issued = sum(prover.issued * len(prover.group.cores) for prover in proven)
            return Outcome((), issued), "fast"
    tasks = [Task(CoreId(core.core, core.sub), _body(core, bases)) for core in launch.cores]
    return run(chip, gm, tasks), "reference"


def _body(core: CoreProgram, bases: Mapping[str, int]) -> Callable[[Core], None]:
    return lambda state: core.program.run(state, core.addresses(bases))


def _perform(proven: Sequence[fast.Prover]) -> None:
    """Compute every store of every core, on as many threads as there are processors.

    Atomic stores, which may meet, are committed in the order of the cores.
    """
    shadows = Shadows()
    work = [
        (store, place, number)
        for prover in proven
        for place, number in enumerate(core.core for core in prover.group.cores)
        for store in prover.stores
    ]
    for store, _, _ in work:
        for tile in store.tiles():
            for a, b in tile.terms:
                shadows.of(a)
                shadows.of(b)

    def compute(item: tuple[Store, int, int]) -> Callable[[], None]:
        store, place, _ = item
        values, known = computed(store, place, shadows)
        if store.atomic:
            return lambda: commit(store, place, values, known)
        commit(store, place, values, known)
        return lambda: None

    with (
        threadpool_limits(limits=1, user_api="blas"),
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        for finish in pool.map(compute, sorted(work, key=lambda item: item[2])):
            finish()
