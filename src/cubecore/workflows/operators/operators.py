"""Operators of vector cores: timed, and run to be verified against NumPy in float64."""

import re
from collections.abc import Mapping
from math import prod
from time import perf_counter

import numpy as np

from cubecore.answers.operators import OperatorRun, TimedOperator
from cubecore.chips import chip as named_chip
from cubecore.chips import default_chip
from cubecore.errors import refuse
from cubecore.kernels.operators.named import NamedOperator, operator_of
from cubecore.kernels.runnable import require_timed
from cubecore.machine.engines import run_launch
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.workflows.operators.results import operator_inputs, worst_error

_MOST_RUN = 2**24
"""Elements that are run: more take minutes."""
_SHAPE = re.compile(r"\d+(x\d+)*")


def operator_problem(op: str, shape: str, dtype: str = "float16") -> NamedOperator:
    """Return the operator that is asked for.

    Parameters
    ----------
    op : str
        A function of elements or rows, attention, rotary, moe_permute or moe_unpermute.
    shape : str
        Extents with x between them. Of a function all but the last are rows.
    dtype : str
        The type of the inputs.

    Raises
    ------
    RequestError
        If the name, the shape or the type is not one that operators take.
    """
    extents = [int(text) for text in shape.split("x")] if _SHAPE.fullmatch(shape) else []
    if not extents or min(extents) < 1 or prod(extents) >= 2**63 or max(extents) >= 2**31:
        need = "be positive integers as in 4096x2048, below 2^31 each"
        raise refuse("--shape", need, repr(shape))
    return operator_of(op, extents, dtype)


def time_operator(
    op: str,
    shape: str,
    *,
    a: str = "float16",
    chip: str | None = None,
    settings: Mapping[str, str] | None = None,
    record: int = 0,
    full: bool = False,
) -> TimedOperator:
    """Return the event-driven timing of an operator on all vector cores of a chip.

    Parameters
    ----------
    op : str
        exp, gelu, softmax, rms_norm, ...
    shape : str
        Extents such as 4096x2048; functions of rows work along the last.
    a : str
        float16, bfloat16 or float32.
    chip : str or None
        Full SoC name.
    settings : mapping or None
        Fields of the chip to replace, as texts: a what-if chip.
    record : int
        Instructions of each group of cores to keep as segments.
    full : bool
        Walk every instruction instead of skipping what recurs.

    Raises
    ------
    RequestError
        If there is no such operator, a row does not fit in UB, or no model times the chip.

    Examples
    --------
    >>> from cubecore.workflows.operators.operators import time_operator
    >>> time_operator("softmax", "4096x2048").timeline.limited_by
    'V'
    """
    problem = operator_problem(op, shape, a)
    target = named_chip(chip or default_chip()).what_if(settings or {})
    require_timed(target)
    return TimedOperator(problem, target, problem.timed(target, record=record, full=full))


def run_operator(
    op: str,
    shape: str,
    *,
    a: str = "float16",
    chip: str | None = None,
    settings: Mapping[str, str] | None = None,
    seed: int = 0,
) -> OperatorRun:
    """Execute an operator on random numbers, and compare with NumPy in float64.

    Parameters
    ----------
    op, shape, a, chip, settings
        As `time_operator` has them.
    seed : int
        Of the random numbers.

    Raises
    ------
    RequestError
        As `time_operator` does, and if there are more than 2^24 elements.
    """
    problem = operator_problem(op, shape, a)
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
    made = {name: np.asarray(tensor.buffer.data) for name, tensor in outputs.items()}
    worst = worst_error(problem, inputs, made)
    return OperatorRun(
        problem, target, outcome.findings, worst, outcome.issued, engine, perf_counter() - began
    )
