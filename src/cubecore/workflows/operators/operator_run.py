"""Operators of vector cores, executed and verified against NumPy in float64."""

from collections.abc import Mapping
from time import perf_counter

import numpy as np

from cubecore.answers.operators import OperatorRun
from cubecore.chips import chip as named_chip
from cubecore.chips import default_chip
from cubecore.errors import refuse
from cubecore.kernels.operators.attention.options import AttentionOptions
from cubecore.machine.engines import run_launch
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.workflows.operators.operators import operator_problem
from cubecore.workflows.operators.results import operator_inputs, worst_error

_MOST_RUN = 2**24
"""Elements that are run: more take minutes."""


def run_operator(
    op: str,
    shape: str,
    *,
    a: str = "float16",
    options: AttentionOptions | None = None,
    chip: str | None = None,
    settings: Mapping[str, str] | None = None,
    seed: int = 0,
) -> OperatorRun:
    """Execute an operator on random numbers, and compare with NumPy in float64.

    Parameters
    ----------
    op, shape, a, options, chip, settings
        As `time_operator` has them.
    seed : int
        Of the random numbers.

    Raises
    ------
    RequestError
        As `time_operator` does, and if there are more than 2^24 elements.
    """
    problem = operator_problem(op, shape, a, options)
    if problem.elements > _MOST_RUN:
        raise refuse("--shape", f"have at most {_MOST_RUN:,} elements to be run", problem.elements)
    target = named_chip(chip or default_chip()).what_if(settings or {})
    began = perf_counter()
    launch = problem.launch(target)
    inputs = operator_inputs(problem, seed)
    memory, bases, outputs = GlobalMemory(), {}, {}
    for spec in launch.tensors:
        if spec.output:
            tensor = outputs[spec.name] = memory.allocate(spec.name, spec.size_bytes)
        else:
            tensor = memory.allocate_from(spec.name, inputs[spec.name].ravel().view(np.uint8))
        bases[spec.name] = tensor.address
    outcome, engine = run_launch(launch, target, memory, bases, "lockstep")
    results = {name: np.asarray(tensor.buffer.data) for name, tensor in outputs.items()}
    worst = worst_error(problem, inputs, results)
    return OperatorRun(
        problem, target, outcome.findings, worst, outcome.issued, engine, perf_counter() - began
    )
