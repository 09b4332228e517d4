"""Random vector kernels, with every flag that they need or one less, beside NumPy."""

from dataclasses import dataclass

import numpy as np

from cubecore import kernel
from cubecore.errors import CubecoreError

_TILE = 64
_EVENTS = 8
_FUNCTIONS = {
    "asc_add": np.add,
    "asc_sub": np.subtract,
    "asc_max": np.maximum,
    "asc_min": np.minimum,
}
_PIPES = {"load": "PIPE_MTE2", "store": "PIPE_MTE3"}


@dataclass(frozen=True)
class Step:
    """A tile loaded, computed from two others, or stored; numbers are of tiles."""

    what: str
    target: int
    sources: tuple[int, ...]

    @property
    def pipe(self):
        return _PIPES.get(self.what, "PIPE_V")

    def conflicts(self, other):
        """True if the two touch a tile that one of them writes."""
        mine, theirs = self._touched(), other._touched()
        return any(place in theirs and (writes or theirs[place]) for place, writes in mine.items())

    def _touched(self):
        """Return the tiles that are touched, and whether they are written."""
        reads = "x" if self.what == "load" else "UB"
        writes = "z" if self.what == "store" else "UB"
        touched = {(reads, tile): False for tile in self.sources}
        return touched | {(writes, self.target): True}


def random_steps(rng, inputs, outputs):
    """Return steps of a body that is repeated or not, none of which reads what nobody wrote."""
    tiles, steps = rng.randint(3, 6), []
    written = set()
    body = rng.randint(2, 14)
    kinds = [rng.choice(("load", "load", "store", *_FUNCTIONS)) for _ in range(body)]
    for number in range(body * rng.choice((1, 1, 2, 4))):
        what = "load" if not written else kinds[number % body]
        target = rng.randrange(tiles)
        if what == "load":
            steps.append(Step(what, target, (rng.randrange(inputs),)))
        elif what == "store":
            steps.append(Step(what, rng.randrange(outputs), (rng.choice(sorted(written)),)))
            continue
        else:
            sources = tuple(rng.choice(sorted(written)) for _ in "ab")
            steps.append(Step(what, target, sources))
        written.add(target)
    return [*steps, *(Step("store", tile, (max(written),)) for tile in range(outputs))]


def synchronised(steps):
    """Return the steps with a flag or a barrier for each two that touch one tile in an order.

    Each is (a name, its arguments); of the two instructions of a flag both have the flag's number.
    """
    before, after = [[] for _ in steps], [[] for _ in steps]
    used, joined, number = {}, 0, 0
    for j, step in enumerate(steps):
        for pipe in ("PIPE_MTE2", "PIPE_V", "PIPE_MTE3"):
            earlier = (i for i in range(j - 1, joined - 1, -1) if steps[i].pipe == pipe)
            i = next((i for i in earlier if steps[i].conflicts(step)), None)
            if i is None:
                continue
            number += 1
            pair = pipe, step.pipe
            if pipe == step.pipe:
                before[j].append(("asc_sync_pipe", (pipe,), number))
            elif used.get(pair, 0) == _EVENTS:
                before[j].append(("asc_sync_pipe", ("PIPE_ALL",), number))
                used, joined = {}, j
                break
            else:
                event = used.get(pair, 0)
                used[pair] = event + 1
                after[i].append(("asc_sync_notify", (*pair, event), number))
                before[j].append(("asc_sync_wait", (*pair, event), number))
    made = []
    for step, first, last in zip(steps, before, after, strict=True):
        made += [*first, step, *last]
    return made, number


def _made(program):
    @kernel(outputs="z", types={"x": "float", "z": "float"})
    def drawn(core, x, z):
        base = core.block_idx
        tiles = [core.ubuf("float", _TILE) for _ in range(6)]
        for entry in program:
            if not isinstance(entry, Step):
                getattr(core, entry[0])(*entry[1])
            elif entry.what == "load":
                at = (base * _INPUTS + entry.sources[0]) * _TILE
                core.asc_copy_gm2ub(tiles[entry.target], x + at, 4 * _TILE)
            elif entry.what == "store":
                at = (base * _OUTPUTS + entry.target) * _TILE
                core.asc_copy_ub2gm(z + at, tiles[entry.sources[0]], 4 * _TILE)
            else:
                left, right = (tiles[tile] for tile in entry.sources)
                getattr(core, entry.what)(tiles[entry.target], left, right, _TILE)

    return drawn


_BLOCKS, _INPUTS, _OUTPUTS = 2, 5, 4


def _wanted(steps, x):
    """Return z, block by block."""
    z = np.zeros((_BLOCKS, _OUTPUTS, _TILE), np.float32)
    for block in range(_BLOCKS):
        tiles = {}
        for step in steps:
            if step.what == "load":
                tiles[step.target] = x[block, step.sources[0]]
            elif step.what == "store":
                z[block, step.target] = tiles[step.sources[0]]
            else:
                function = _FUNCTIONS[step.what]
                tiles[step.target] = function(*(tiles[tile] for tile in step.sources))
    return z


def try_kernels(tally, rng, count):
    """Try kernels that are right in each order, and each with one flag or barrier less.

    What the latter leave must be right in every order, or a finding.
    """
    for number in range(count):
        steps = random_steps(rng, _INPUTS, _OUTPUTS)
        draw = np.random.default_rng(rng.randrange(2**32))
        x = draw.integers(-9, 10, (_BLOCKS, _INPUTS, _TILE)).astype(np.float32)
        wanted = _wanted(steps, x)
        orders = ("program", "late", "early", f"random:{rng.randrange(99)}")
        whole, flags = synchronised(steps)
        told = f"kernel {number}, {len(steps)} steps"
        name = "random kernels"
        for order, (z, findings) in _runs(tally, name, whole, x, orders):
            if findings:
                tally.fail(name, f"{told}, {order}: {findings[0]}")
            elif z.tobytes() != wanted.tobytes():
                tally.fail(name, f"{told}, {order}: another result than NumPy's")
        if not flags:
            continue
        without = rng.randint(1, flags)
        less = [e for e in whole if isinstance(e, Step) or e[2] != without]
        name = "random kernels, a flag removed"
        ran = dict(_runs(tally, name, less, x, orders))
        differ = [order for order, (z, _) in ran.items() if z.tobytes() != wanted.tobytes()]
        if differ and not any(findings for _, findings in ran.values()):
            tally.fail(name, f"{told}, without {without}: differs in {differ}, no finding")
        if differ:
            tally.tried["random kernels, a flag removed, of which with another result"] += 1


def _runs(tally, name, program, x, orders):
    """Yield each order with what it leaves and what it says of flags that order nothing."""
    for order in orders:
        z = np.full((_BLOCKS, _OUTPUTS, _TILE), np.nan, np.float32)
        tally.tried[name] += 1
        try:
            ran = _made(program).using(order=order)[_BLOCKS](x.reshape(-1), z.reshape(-1))
        except CubecoreError as error:
            yield order, (z, (str(error),))
        else:
            yield order, (z, tuple(finding.message for finding in ran.findings))
