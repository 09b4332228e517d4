"""Operators of vector cores: timed, and run to be verified against NumPy in float64."""

import re
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from cubecore.arrays import Array
from cubecore.chips import chip as named_chip
from cubecore.chips import default_chip
from cubecore.dtypes import element_type
from cubecore.errors import did_you_mean, refuse
from cubecore.kernels.operators.functions import EPSILON, FUNCTIONS
from cubecore.kernels.operators.launch import TYPES, OperatorProblem, operator_launch
from cubecore.kernels.runnable import require_timed
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.engines import run_launch
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.timing.launch import time_launch
from cubecore.workflows.calibration.intervals import Interval, interval

if TYPE_CHECKING:
    from cubecore.aliases import Json
    from cubecore.chips.model import Chip
    from cubecore.machine.sanitizer.findings import SanitizerFinding
    from cubecore.timing.records import Timeline

FUSED = (
    "an instruction of three goes to UB: this architecture computes in registers (an assumption)"
)
_MOST_RUN = 2**24
"""Elements that are run: more take minutes."""
_SHAPE = re.compile(r"\d+(x\d+)*")
_TOLERANCE = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-15}
"""Of a result, beside as much of 1: conversions round once, and float32 a few dozen times."""


@dataclass(frozen=True, slots=True)
class TimedOperator:
    """An operator on a chip, and where its cycles go."""

    problem: OperatorProblem
    chip: "Chip"
    timeline: "Timeline"

    @property
    def fused(self) -> bool:
        """True if the time is of fewer instructions than `run` executes."""
        return _is_fused(self.chip)

    @property
    def interval(self) -> Interval:
        """The time's interval, by how far the model was off on operators that no fit has seen."""
        group = "operator" if self.problem.function.by_rows else "vector library"
        return interval(self.timeline.us, self.chip.arch, group, self.problem.dtype.bits)

    def to_json(self) -> "Json":
        """Return the operator, its chip and its timeline."""
        return {
            "operator": _json(self.problem),
            "chip": self.chip.name,
            **self.timeline.to_json(),
            "interval": self.interval.to_json(),
            "assumed": [FUSED] if self.fused else [],
        }


@dataclass(frozen=True, slots=True)
class OperatorRun:
    """An operator that was executed: its findings, and its worst error over the tolerance."""

    problem: OperatorProblem
    chip: "Chip"
    findings: "tuple[SanitizerFinding, ...]"
    worst: float
    issued: int
    engine: str
    wall_s: float

    @property
    def verified(self) -> bool:
        """True if every result is right and nothing was found."""
        return self.worst <= 1 and not self.findings

    def to_json(self) -> "Json":
        """Return what was run, and how it ended."""
        return {
            "operator": _json(self.problem),
            "chip": self.chip.name,
            "verified": self.verified,
            "worst_error_over_tolerance": self.worst,
            "findings": [finding.to_json() for finding in self.findings],
            "issued": self.issued,
            "engine": self.engine,
            "wall_s": self.wall_s,
        }


def _json(problem: OperatorProblem) -> "Json":
    return {"op": problem.op, "shape": [problem.rows, problem.columns], "a": problem.dtype.name}


def _is_fused(chip: "Chip") -> bool:
    return chip.arch != "2201"


def operator_problem(op: str, shape: str, dtype: str = "float16") -> OperatorProblem:
    """Return the operator that is asked for.

    Parameters
    ----------
    op : str
        A name of `FUNCTIONS`.
    shape : str
        Extents with x between them; all but the last are rows.
    dtype : str
        The type of the inputs.

    Raises
    ------
    RequestError
        If the name, the shape or the type is not one that operators take.
    """
    if op not in FUNCTIONS:
        raise refuse("--op", f"be {', '.join(FUNCTIONS)}", repr(op), did_you_mean(op, FUNCTIONS))
    extents = [int(text) for text in shape.split("x")] if _SHAPE.fullmatch(shape) else []
    rows = int(np.prod(extents[:-1], dtype=object)) if extents else 0
    if not extents or min(extents) < 1 or rows * extents[-1] >= 2**31:
        raise refuse(
            "--shape", "be positive integers as in 4096x2048, below 2^31 in all", repr(shape)
        )
    if dtype not in TYPES:
        raise refuse("--a", f"be {', '.join(TYPES)} of an operator", repr(dtype))
    return OperatorProblem(op, rows, extents[-1], element_type(dtype))


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
    >>> from cubecore.workflows.operators import time_operator
    >>> time_operator("softmax", "4096x2048").timeline.limited_by
    'V'
    """
    problem = operator_problem(op, shape, a)
    target = named_chip(chip or default_chip()).what_if(settings or {})
    require_timed(target)
    fused = _is_fused(target)
    launch = operator_launch(problem, target, fused=fused)
    line = time_launch(launch, target, record=record, full=full, stand_in=fused)
    return TimedOperator(problem, target, line)


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
    if problem.operations > _MOST_RUN:
        raise refuse(
            "--shape", f"have at most {_MOST_RUN:,} elements to be run", problem.operations
        )
    target = named_chip(chip or default_chip()).what_if(settings or {})
    began = perf_counter()
    launch = operator_launch(problem, target)
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
    worst = _worst(problem, inputs, made)
    return OperatorRun(
        problem, target, outcome.findings, worst, outcome.issued, engine, perf_counter() - began
    )


def operator_inputs(problem: OperatorProblem, seed: int) -> dict[str, Array]:
    """Return random inputs: arrays around 0, positive where the function asks for it."""
    rng = np.random.default_rng(seed)
    kind, shape = problem.dtype.numpy, (problem.rows, problem.columns)
    arrays = [rng.normal(0, 2, shape) for _ in range(problem.function.arrays)]
    if problem.op in {"ln", "sqrt"}:
        arrays = [np.abs(one) + 0.1 for one in arrays]
    vectors = [rng.normal(1, 0.2, problem.columns) for _ in range(problem.function.vectors)]
    named = {f"x{i}": one for i, one in enumerate(arrays)}
    named |= {f"v{i}": one for i, one in enumerate(vectors)}
    return {name: one.astype(kind) for name, one in named.items()}


def operator_reference(problem: OperatorProblem, inputs: Mapping[str, Array]) -> Array:
    """Return the operator's result by NumPy in float64; of dynamic_quant what it stands for."""
    wide = {name: one.astype(np.float64) for name, one in inputs.items()}
    arrays = [wide[f"x{i}"] for i in range(problem.function.arrays)]
    vectors = [wide[f"v{i}"] for i in range(problem.function.vectors)]
    with np.errstate(over="ignore"):
        return np.asarray(_REFERENCES[problem.op](*arrays, *vectors))


def _softmax(x: Array) -> Array:
    power = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(power / power.sum(axis=1, keepdims=True))


def _normed(x: Array) -> Array:
    return np.asarray(x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + EPSILON))


_REFERENCES: Mapping[str, Callable[..., Array]] = {
    "abs": np.abs,
    "add": np.add,
    "dynamic_quant": lambda x: x,
    "exp": np.exp,
    "gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "layer_norm": lambda x, gamma, beta: _normed(x - x.mean(axis=1, keepdims=True)) * gamma + beta,
    "ln": np.log,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "mul": np.multiply,
    "reduce_max": lambda x: x.max(axis=1),
    "reduce_sum": lambda x: x.sum(axis=1),
    "relu": lambda x: np.maximum(x, 0),
    "rms_norm": lambda x, gamma: _normed(x) * gamma,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softmax": _softmax,
    "sqrt": np.sqrt,
    "swish": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


def _worst(
    problem: OperatorProblem, inputs: Mapping[str, Array], made: Mapping[str, Array]
) -> float:
    """Return the worst error of the result over what it may be."""
    right = operator_reference(problem, inputs)
    if problem.function.gives == "quantised":
        scale = made["scale"].view(np.float32).astype(np.float64)[:, None]
        found = made["y"].view(np.int8).reshape(right.shape) * scale
        return float(np.max(np.abs(found - right) / (scale * 0.51)))
    found = made["y"].view(problem.dtype.numpy).astype(np.float64).reshape(right.shape)
    size = np.abs(right)
    if problem.op == "reduce_sum":
        size = size + np.abs(inputs["x0"].astype(np.float64)).sum(axis=1) * 2.0**-6
    error = np.abs(found - right) / (_TOLERANCE[problem.dtype.name] * (size + 2.0**-4))
    return float(np.max(np.where(np.isfinite(error), error, np.inf)))


def operator_names() -> Sequence[str]:
    """Return the operators by name."""
    return tuple(FUNCTIONS)
