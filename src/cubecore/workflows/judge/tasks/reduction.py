"""The search for smaller sizes: the largest numbers of a task are divided while its model runs.

It draws nothing and measures no time, so that equal tasks have equal sizes on every machine.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cubecore.aliases import Json
from cubecore.frontends.cpp.files import write_at_once
from cubecore.frontends.cpp.toolchain.cache import digest, folder
from cubecore.version import __version__
from cubecore.workflows.judge.tasks.model_costs import ModelCost, model_cost, runs
from cubecore.workflows.judge.tasks.sized_module import TaskModule

ALIGNED, ODD, FULL = "aligned", "odd tail", "full"
"""The cases by their sizes: with the remainders of the full ones, with odd numbers, the task's."""
MOST_BYTES, MOST_OPERATIONS = 512 << 20, 50_000_000_000
"""The most that a reduced model may have where no smaller one runs: its weights are its own."""
_FACTORS = (64, 16, 8, 4, 2)
_ALIGNMENTS = (64, 16)
"""A number keeps its remainder by the largest of these that it is twice as large as."""
_MOST_TRIED = 120
"""Sizes that are tried for a task; a model of hundreds of layers takes a tenth of a second each."""
_OPERATIONS_A_BYTE = 64
"""Operations of products that a reduced model may have for each byte: a kernel computes them."""
_ODD_SHARE = 16
"""The sizes with an odd tail have so small a share of the bytes: slow kernels get a verdict."""

_SMALLEST = 4
_ROWS = 32
"""Rows, the first number of the first input, are divided down to it before all else.

Cores share the rows, and what a core does with one, its tiles and its buffers, stays as it was.
"""
_LEAST_STEP = 32
"""Numbers go below it by halves alone."""


@dataclass(frozen=True, slots=True)
class TaskSizes:
    """The numbers of a task's sites: reduced ones, also with odd tails; and the costs of all.

    `odd` is empty where the model runs at none.
    """

    aligned: tuple[int, ...]
    odd: tuple[int, ...]
    full: Json
    aligned_cost: Json
    odd_cost: Json


def task_sizes(path: Path, bytes_: int) -> TaskSizes | None:
    """Return reduced sizes of a task; None if it is small enough, or has none that are.

    `bytes_` is the most that the arrays of a model may have together.
    """
    file = folder().absolute().parent / "judged" / f"sizes-{_key(path, bytes_)}.json"
    try:
        kept = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        found = _searched(TaskModule(path), bytes_)
        text = json.dumps(None if found is None else asdict(found))
        file.parent.mkdir(parents=True, exist_ok=True)
        write_at_once(file, text.encode())
        kept = json.loads(text)
    if kept is None:
        return None
    return TaskSizes(**(kept | {name: tuple(kept[name]) for name in ("aligned", "odd")}))


def _key(path: Path, bytes_: int) -> str:
    return digest([__version__, str(bytes_), path.read_text("utf-8", "replace")])


def _searched(task: TaskModule, bytes_: int) -> TaskSizes | None:
    values = [site.value for site in task.sites]
    for coupled in (False, True):
        search = _Search(task, bytes_, coupled=coupled)
        full = search.cost(values)
        if full is None or search.fits(full, bytes_):
            return None
        aligned, cost = search.reduced(values, full, bytes_)
        if cost.bytes >= full.bytes or not runs(task.made(aligned)):
            continue
        odd, odd_cost = search.odd(aligned, cost)
        if odd and not runs(task.made(odd)):
            odd = []
        plain = (asdict(full), asdict(cost), asdict(odd_cost) if odd else {})
        return TaskSizes(tuple(aligned), tuple(odd), *plain)
    return None


class _Search:
    """Sizes of one task that were tried, each with its cost, None where the model does not run.

    `coupled` numbers are divided together if the task has the same number for both.
    """

    def __init__(self, task: TaskModule, bytes_: int, *, coupled: bool) -> None:
        self._task, self._bytes, self._coupled = task, bytes_, coupled
        self._rows: set[int] | None = None
        self._costs: dict[tuple[int, ...], ModelCost | None] = {}

    def cost(self, values: Sequence[int]) -> ModelCost | None:
        """Return what the model costs at some sizes, None if it does not run there."""
        key = tuple(values)
        if key not in self._costs:
            if len(self._costs) >= _MOST_TRIED:
                return None
            try:
                self._costs[key] = model_cost(self._task.made(key))
            except Exception:  # noqa: BLE001 - the task's own code, at sizes that it does not know
                self._costs[key] = None
        return self._costs[key]

    @staticmethod
    def fits(cost: ModelCost, bytes_: int) -> bool:
        """Return whether a model is small enough to be run."""
        return cost.bytes <= bytes_ and cost.operations <= bytes_ * _OPERATIONS_A_BYTE

    def reduced(
        self,
        values: Sequence[int],
        cost: ModelCost,
        bytes_: int,
    ) -> tuple[list[int], ModelCost]:
        """Return the first sizes that fit, the largest number first; else the smallest found."""
        now = list(values)
        stuck: set[int] = set()
        while not self.fits(cost, bytes_):
            # Equal numbers are tried alone and then together: two inputs of one size often have a
            # constant each, and a model runs only where both changed.
            free = [n for n, value in enumerate(now) if n not in stuck and value > _SMALLEST]
            if not free:
                break
            rows = [n for n in free if now[n] > _ROWS and n in self._leading(values)]
            largest = max(rows or free, key=lambda n: (now[n], -n))
            step = self._step(now, largest, cost, bytes_)
            if step is None:
                stuck.add(largest)
            else:
                now, cost = step
        return now, cost

    def _step(
        self,
        now: list[int],
        site: int,
        cost: ModelCost,
        bytes_: int,
    ) -> tuple[list[int], ModelCost] | None:
        need = max(cost.bytes / bytes_, cost.operations / (bytes_ * _OPERATIONS_A_BYTE))
        for factor in _FACTORS:
            # No larger step than the bytes ask for, so that one number does not give all.
            if factor > 2 and (factor > need or now[site] // factor < _LEAST_STEP):
                continue
            for sites in self._choices(now, site):
                tried = list(now)
                for n in sites:
                    tried[n] = _aligned(now[n], factor)
                there = self.cost(tried)
                smaller = there is not None and (
                    (there.bytes, there.operations) < (cost.bytes, cost.operations)
                )
                if there is not None and smaller and tried != now:
                    return tried, there
        return None

    def _leading(self, values: Sequence[int]) -> set[int]:
        """Return the sites that the first number of the first input follows."""
        if self._rows is None:
            cost = self.cost(values)
            halved = ([*values[:n], value // 2, *values[n + 1 :]] for n, value in enumerate(values))
            costs = [self.cost(each) for each in halved]
            first = cost.shapes[0][:1] if cost is not None and cost.shapes else ()
            self._rows = {n for n, c in enumerate(costs) if c and c.shapes[0][:1] != first}
        return self._rows

    def _choices(self, now: Sequence[int], site: int) -> list[list[int]]:
        """Return the sites to change at once: one alone, and all that were and are equal to it."""
        first = [each.value for each in self._task.sites]
        alike = [n for n in range(len(now)) if now[n] == now[site] and first[n] == first[site]]
        return [alike] if self._coupled or len(alike) == 1 else [[site], alike]

    def odd(self, aligned: Sequence[int], cost: ModelCost) -> tuple[list[int], ModelCost]:
        """Return small sizes with odd tails, as many as the model takes; none if it takes none."""
        least = max(self._bytes // _ODD_SHARE, 1)
        now, there = self.reduced(aligned, cost, least)
        found = False
        for n in sorted(range(len(now)), key=lambda n: -now[n]):
            if now[n] <= _SMALLEST:
                continue
            for sites in self._choices(now, n):
                tried = [*now]
                for each in sites:
                    tried[each] = now[n] - 1 + now[n] % 2
                other = self.cost(tried)
                if other is not None and other.shapes != there.shapes:
                    now, there, found = tried, other, True
                    break
        return (now, there) if found else ([], cost)


def _aligned(value: int, factor: int) -> int:
    """Return a part of a number that has its remainder: kernels tell tails by that."""
    part = value // factor
    for size in _ALIGNMENTS:
        if part >= 2 * size:
            return part - part % size + value % size
    return max(part, 1)
