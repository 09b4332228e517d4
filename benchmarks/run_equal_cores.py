"""How much running equal cores together saves, and what signals, scalars and checks cost.

Prints one JSON object of ratios, each of processor times taken in turns in this process, beside
its target. SHARE scales the work; the targets are for 1. ONLY names figures to take, by a part of
their names.
"""

import json
import runpy
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
from targets import against, arguments

import cubecore
from cubecore.frontends.kernels.session import ScriptSession

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "kernels"
FULL = 2**64 - 1
TILE = 256
TURNS = 5
"""How often two things are timed in turns; the least of each counts."""


def doubled(core: Any, x: Any, z: Any, tiles: tuple[Any, Any], at: int) -> None:
    """Add one tile to itself."""
    a, b = tiles
    core.asc_copy_gm2ub(a, x + at, 4 * TILE)
    core.asc_sync_pipe("PIPE_ALL")
    core.asc_add(b, a, a, TILE)
    core.asc_sync_pipe("PIPE_ALL")
    core.asc_copy_ub2gm(z + at, b, 4 * TILE)


@cubecore.kernel(outputs="z")
def plain(core: Any, x: Any, z: Any, turns: int) -> None:
    """Add tiles to themselves, one after another."""
    tiles = core.ubuf("float", TILE), core.ubuf("float", TILE)
    for turn in range(turns):
        at = (core.block_idx * turns + turn) * TILE
        doubled(core, x, z, tiles, at)
        core.asc_sync_pipe("PIPE_ALL")


@cubecore.kernel(kind="mix", outputs="z")
def signalling(core: Any, x: Any, z: Any, turns: int) -> None:
    """Do the same on AIVs that tell their AIC of every tile, and hear from it."""
    if core.is_aic:
        for _ in range(turns):
            core.asc_sync_block_wait("PIPE_S", 0)
            core.asc_sync_block_arrive("PIPE_FIX", 1)
        return
    tiles = core.ubuf("float", TILE), core.ubuf("float", TILE)
    for turn in range(turns):
        at = (core.block_idx * turns + turn) * TILE
        doubled(core, x, z, tiles, at)
        core.asc_sync_block_arrive("PIPE_MTE3", 0)
        core.asc_sync_block_wait("PIPE_S", 1)
        core.asc_sync_pipe("PIPE_ALL")


@cubecore.kernel()
def repeated(core: Any, _: Any, turns: int, way: int) -> None:
    """Add by strides (0), by a count (1), read (2) or write (3) a scalar, add once, repeatedly."""
    a, b = core.ubuf("float", TILE), core.ubuf("float", TILE)
    core.asc_set_vector_mask(0, FULL)
    core.asc_duplicate(a, 1.0, 4, 1, 8)
    core.asc_sync_pipe("PIPE_ALL")
    for _ in range(turns):
        if way == 0:
            core.asc_add(b, a, a, 4, 1, 1, 1, 8, 8, 8)
            core.asc_sync_pipe("PIPE_V")
        elif way == 1:
            core.asc_add(b, a, a, TILE)
            core.asc_sync_pipe("PIPE_V")
        elif way == 2:
            core.load(a)
        elif way == 3:
            core.store(a, 1.0)
        else:
            core.asc_add(b, a, a, 1, 1, 1, 1, 8, 8, 8)
            core.asc_sync_pipe("PIPE_V")


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work."""
    begin = process_time()
    work()
    return process_time() - begin


def ratio(one: Callable[[], object], other: Callable[[], object]) -> float:
    """Return how much longer one thing takes than another, in turns."""
    times = [(seconds(one), seconds(other)) for _ in range(TURNS)]
    return min(a for a, _ in times) / min(b for _, b in times)


CHIP = "Ascend910B1"
"""A chip of 24 AI Cores."""


def run(kernel: Any, blocks: int, turns: int, *more: int, **options: str) -> Any:
    """Launch one of the kernels above on as much data as it takes; return the run."""
    each = 2 if kernel.kind == "mix" else 1
    x = np.ones(blocks * each * turns * TILE, np.float32)
    arrays = (x, np.empty_like(x)) if kernel.outputs else (x[:TILE],)
    done = kernel.using(chip=CHIP, **options)[blocks](*arrays, turns, *more)
    if done.findings:
        raise SystemExit(done.findings[0].message)
    return done


def example(name: str, *sizes: int, blocks: int = 0) -> Callable[[str], str]:
    """Return what runs an example on an engine, and returns the engine that ran it."""
    module = SimpleNamespace(**runpy.run_path(str(EXAMPLES / f"{name}.py")))
    given = module.inputs(*sizes)

    def launched(engine: str) -> str:
        session = ScriptSession({"engine": engine})
        with session.collecting():
            module.launch(*given, *([blocks] if blocks else []))
        return session.runs[-1].engine

    launched("fast")
    return launched


def faster(work: Callable[[str], str], target: float) -> dict[str, Any]:
    """Return how much faster the fast engine runs something than the reference engine."""
    found = ratio(lambda: work("reference"), lambda: work("fast"))
    return against(found, target, least=True, engine=work("fast"))


def signals(turns: int) -> dict[str, Any]:
    """Return an issue's cost in a launch with signals over that in one without, on 24 blocks."""
    own, other = run(signalling, 24, turns), run(plain, 40, turns)
    found = ratio(lambda: run(signalling, 24, turns), lambda: run(plain, 40, turns))
    return against(found * other.issued / own.issued, 2, engine=own.engine)


def million(turns: int) -> dict[str, Any]:
    """Return the memory that a million issues of one core hold, in megabytes."""
    run(plain, 1, 10)
    tracemalloc.start()
    done = run(plain, 1, turns)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    own = 2 * 4 * TILE * turns * 3  # the arrays, and their copies in global memory with maps
    return against((most - own) / done.issued, 100)


def main() -> None:
    """Print the figures."""
    parser = arguments(__doc__ or "", share=1.0, only="")
    given = parser.parse_args()

    def scaled(turns: int) -> int:
        return max(int(turns * given.share), 3)

    def checks(kernel: Any, blocks: int, turns: int) -> dict[str, Any]:
        on = lambda: run(kernel, blocks, turns)  # noqa: E731
        return against(ratio(on, lambda: run(kernel, blocks, turns, checks="none")), 1.6)

    rows = 1024 if given.share >= 1 else 256
    figures: dict[str, Callable[[], dict[str, Any]]] = {
        "flash_attention_512": lambda: faster(example("flash_attention", rows // 2), 5),
        "flash_attention_1024": lambda: faster(example("flash_attention", rows), 5),
        "matmul_leaky_relu": lambda: faster(
            example("matmul_leaky_relu", 1024, 1280, 512, blocks=20), 4
        ),
        "vector_add": lambda: faster(example("vector_add", 40 * 3 * 4096, blocks=40), 1),
        "layernorm": lambda: faster(example("layernorm", 40 * 48, blocks=40), 1),
        "gelu": lambda: faster(example("gelu", 40 * 3 * 4096, blocks=40), 1),
        "softmax": lambda: faster(example("softmax", 40 * 48, blocks=40), 1),
        "signals_over_plain": lambda: signals(scaled(200)),
        "forty_blocks_over_one": lambda: against(
            ratio(lambda: run(plain, 40, scaled(100)), lambda: run(plain, 1, scaled(100))), 8
        ),
        "count_over_strided": lambda: against(
            ratio(
                lambda: run(repeated, 40, scaled(1000), 1),
                lambda: run(repeated, 40, scaled(1000), 0),
            ),
            1.1,
        ),
        "scalar_over_add": lambda: against(
            ratio(
                lambda: run(repeated, 40, scaled(1000), 2),
                lambda: run(repeated, 40, scaled(1000), 4),
            ),
            3,
        ),
        "scalar_store_over_add": lambda: against(
            ratio(
                lambda: run(repeated, 40, scaled(1000), 3),
                lambda: run(repeated, 40, scaled(1000), 4),
            ),
            3,
        ),
        "checks_on_over_off_plain": lambda: checks(plain, 40, scaled(200)),
        "checks_on_over_off_signals": lambda: checks(signalling, 24, scaled(200)),
        "megabytes_a_million_issues": lambda: million(scaled(20_000)),
    }
    taken = {name: take() for name, take in figures.items() if given.only in name}
    print(json.dumps({"figures": taken}, indent=2))


if __name__ == "__main__":
    main()
