"""Marks of cheating of one call of a submission."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cubecore.aliases import Json, JsonMapping
from cubecore.frontends.kernels.session import KernelRun
from cubecore.workflows.judge.cheating import torch_operations
from cubecore.workflows.judge.cheating.kinds import (
    CHANGED_IN_PLACE,
    INPUTS_CHANGED,
    SCALAR,
    TORCH,
    VALUED,
)
from cubecore.workflows.judge.cheating.launch_marks import launch_marks, prepared_marks
from cubecore.workflows.judge.tasks.comparison import leaves, plain
from cubecore.workflows.judge.values import is_tensor

_MANY_BYTES = 4096
"""Bytes of an input that is data, not a few sizes."""
_COMPUTING = ("V", "M", "PIPE_V", "PIPE_M")


@dataclass(frozen=True, eq=False, slots=True)
class FinishedCall:
    """A call that has returned: its case, what it was given and returned, and its launches.

    `host_values` are the bytes of inputs whose values a tiling function was given.
    """

    name: str
    inputs: Any
    results: Any
    runs: tuple[KernelRun, ...]
    changed_inputs: bool
    in_place: bool
    host_values: Mapping[str, int]


def bytes_of(inputs: Any) -> list[int]:
    """Return what tells if arrays have changed."""
    return [hash(plain(leaf).tobytes()) for _, leaf in leaves(inputs)]


def call_marks(call: FinishedCall, record: JsonMapping, time: JsonMapping) -> Iterator[Json]:
    """Yield the marks of a call; `record` is its case's, `time` the predicted time, if any."""
    name = call.name
    inputs = [plain(leaf) for _, leaf in leaves(call.inputs)]
    arrays = [each for each in inputs if each.ndim and each.size]
    results = [plain(leaf) for _, leaf in leaves(call.results)]
    yield from launch_marks(call.runs, arrays, results, name)
    # A model has weights of its own, and what it computes with them is torch's.
    if not any(is_tensor(leaf) for _, leaf in leaves(call.results)):
        yield from prepared_marks(call.runs, arrays, results, name)
    if call.changed_inputs and record.get("keeps_inputs", True):
        kind = CHANGED_IN_PLACE if call.in_place else INPUTS_CHANGED
        yield kind.found("an input's bytes differ behind the call", name)
    least = min((each.size for each in results), default=0)
    computed = {n: size for n, size in torch_operations.current.computed.items() if size >= least}
    if computed:
        parts = ", ".join(f"{function} of {size:,}" for function, size in computed.items())
        yield TORCH.found(parts, name)
    for name_of_input, size in call.host_values.items():
        if size >= _MANY_BYTES:
            yield VALUED.found(f"{size:,} B of {name_of_input}", name)
    pipes = time.get("pipes", {})
    reads = sum(sum(run.reads.values()) for run in call.runs)
    if pipes and not any(pipes.get(pipe) for pipe in _COMPUTING) and reads >= max(least, 1):
        yield SCALAR.found(f"the scalar unit read {reads:,} values, V and M idle", name)
