"""Launches of a user's kernels as the timing takes them: trees of what was issued, and the chip.

Where no costs of a chip are published, another one's stand for them, marked as such.
"""

from dataclasses import fields, replace
from typing import TYPE_CHECKING

from cubecore.chips import chip
from cubecore.chips.model import Chip
from cubecore.errors import unable
from cubecore.frontends.kernels.session import KernelRun
from cubecore.isa.program.launch import Launch, TensorSpec
from cubecore.isa.vector.simt.thread_function import ThreadFunction
from cubecore.kernels.build.recorded_launch import (
    RecordedTensor,
    Recording,
    recorded_launch,
    with_cores,
)
from cubecore.kernels.runnable import require_timed

if TYPE_CHECKING:
    from cubecore.frontends.tik.host.kernel import TikRun

ROUGH_THREADS = (
    "rough: times of threads (SIMT) follow from counts of blocks, lines, UB banks and operations, "
    "to compare variants of a kernel; docs/validation.md has the error"
)
THREADS, VECTOR = "THREADS", "VECTOR"
"""Kinds of kernels by how they start (`short_start_cycles`)."""
STAND_IN = "Ascend910B3"
"""The chip whose costs stand for those of the earlier AI Cores: the nearest that was measured."""
_RATES = {
    "gm_to_ub_bytes_per_cycle": "l2_read_bytes_per_cycle",
    "gm_to_l1_bytes_per_cycle": "l2_read_bytes_per_cycle",
    "ub_to_gm_bytes_per_cycle": "ub_to_l2_bytes_per_cycle",
}
"""Costs that a configured rate of the chip's own gives."""


def rough_chip(unpriced: Chip) -> tuple[Chip, str]:
    """Return a chip with costs for one that has none, and a sentence that says so.

    Its sizes, clock, cores and configured rates are its own, unknown ones apart; every other cost
    is that of `STAND_IN`. What only the earlier cores have, but for their moves between L0C, L1 and
    UB, costs nothing.
    """
    stated = {f.name: getattr(unpriced, f.name) for f in fields(unpriced) if f.name != "arch"}
    stated = {name: value for name, value in stated.items() if value is not None}
    rates = {cost: stated[rate] for cost, rate in _RATES.items() if rate in stated}
    clock, cores, width = unpriced.frequency_hz, unpriced.aic_count, unpriced.ddr_bytes_per_cycle
    if clock and cores and width:
        rates["hbm_bytes_per_second"] = width * cores * clock
    said = (
        f"rough: no costs of {unpriced.name} are published; its own clock, cores and configured "
        f"rates were taken, and {STAND_IN}'s costs of instructions"
    )
    return replace(chip(STAND_IN), **(stated | rates)), said


def timed_chip(run: "KernelRun | TikRun") -> tuple[Chip, str | None]:
    """Return the chip that a launch is timed on, and what is rough of that; None where nothing is.

    Raises
    ------
    RequestError
        If no model times kernels of the launch's chip.
    """
    if not isinstance(run, KernelRun) and run.chip.joins_vector:
        return rough_chip(run.chip)
    require_timed(run.chip)
    return run.chip, ROUGH_THREADS if isinstance(run, KernelRun) and _threads(run)[0] else None


def _threads(run: KernelRun) -> tuple[bool, bool]:
    """Return whether threads ran in a launch, and whether nothing else did."""
    kinds = [
        isinstance(template, ThreadFunction)
        for trace in run.traces.values()
        for template in trace.templates
    ]
    return any(kinds), all(kinds)


def launch_of(run: "KernelRun | TikRun") -> Launch:
    """Return a launch as trees of what its cores issued."""
    return _recorded(run) if isinstance(run, KernelRun) else _launched(run)


def _launched(run: "TikRun") -> Launch:
    """Return what a TIK kernel launched: its tree, or what it issued where that reads memory."""
    if not run.traces:
        return run.launch
    tensors = [RecordedTensor(spec, run.bases[spec.name]) for spec in run.launch.tensors]
    recordings = [Recording(core.core, core.sub, trace) for core, trace in run.traces.items()]
    return recorded_launch(run.kernel, tensors, recordings)


def _recorded(run: KernelRun) -> Launch:
    buffers = {tensor.name: tensor for _, tensor in run.tensors}  # an array given twice is one
    tensors = [
        RecordedTensor(TensorSpec(name, tensor.buffer.size_bytes), tensor.address)
        for name, tensor in buffers.items()
    ]
    recordings = [Recording(core.core, core.sub, trace) for core, trace in run.traces.items()]
    launch = recorded_launch(run.kernel, tensors, recordings)
    if len(run.traces) < len(run.cores):
        whole = with_cores(launch, [(core.core, core.sub) for core in run.cores])
        if whole is None:
            sentence = f"{run.kernel} has cores unlike each other, and only some of them were run"
            raise unable(run.kernel, sentence)
        launch = whole
    some, all_ = _threads(run)
    # A kernel of threads alone has no start-up of its own beside the launch.
    return replace(launch, kind=THREADS if all_ else VECTOR) if some else launch
