"""Facts that a core reads of its launch, and the blocks that it runs in turns."""

from collections.abc import Callable

from cubecore.frontends.capi.core_handle import CoreHandle
from cubecore.frontends.cpp.launch.dimensions import Dimensions
from cubecore.frontends.cpp.wire import Launch
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.check import memory_bytes
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.caches import Dcci
from cubecore.isa.scalar.sync import PipeBarrier


def turns(
    handle: CoreHandle, run: Callable[[int, int], None], at_once: int, place: Location
) -> None:
    """Run the blocks that a core takes in turns: `run` takes a block, and how many run at once.

    A block begins when the one before it on the core has completed, and its data cache is clean.
    """
    position = handle.core.registers.position
    for block in range(position.block, position.blocks, at_once):
        if block != position.block:
            handle.record(PipeBarrier(), (), place)
            handle.modes.lines.clean(Dcci())
            if handle.core.data_cache is not None:
                handle.core.data_cache.clean(None)
        run(block, at_once)


def launch_facts(
    handle: CoreHandle,
    kind: str,
    base: int,
    *,
    block: int,
    at_once: int,
    tiling_key: int = 0,
    auto_sync: bool = True,
    size: Dimensions | None = None,
    counts: bool = False,
) -> Launch:
    """Return the facts of its launch that a core reads while it runs one of its blocks."""
    core, chip = handle.core, handle.core.chip
    position = core.registers.position
    facts = Launch(
        gm_base=base,
        block=block,
        at_once=at_once,
        blocks=position.blocks,
        part=position.part,
        parts=position.parts,
        is_cube=core.id.is_aic,
        tiling_key=tiling_key,
        task=("vector", "cube", "mix").index(kind.partition("_")[0]),
        auto_sync=auto_sync and not core.id.is_aic,
        counts=counts,
    )
    for name in ("UB", "L1", "L0A", "L0B", "L0C", "BT", "FB"):
        setattr(facts, f"{name.lower()}_bytes", memory_bytes(chip, Mem[name])[1] or 0)
    if kind == "vector":
        facts.ub_kept = chip.ub_bytes - facts.ub_bytes  # page "NPU架构版本2201": for mix launches
    if size is not None:
        facts.grid[:], facts.threads[:] = size.grid, size.threads
        facts.dynamic_bytes = size.dynamic_bytes
    return facts
