"""The survey of public operator projects that run on Ascend 950, compared with NumPy.

`python -m tools.evidence.operator_runs CHECKOUTS [--match REGEX] [--seconds S]` runs operators of
ops-math and ops-nn: a project's own op_host gives the tiling, its kernel of arch35 computes on
random inputs, and the result is compared with a function of NumPy that is named here. Repositories
lie as CHECKOUTS/hicann/NAME, opbase with the op_hosts' common part among them. Those surveyed with
these headers before are kept; S seconds later the rest waits for another call. Outcomes are written
to `operator_runs.jsonl` beside this file, which holds names alone.
"""

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from tools.evidence.cpp_programs import obstacle

import cubecore
from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.toolchain.generated.header_folder import headers
from cubecore.machine.sanitize.findings import faults

DATA = Path(__file__).with_name("operator_runs.jsonl")
CHIP = "Ascend950PR_9589"
_SHARED = ("hicann/opbase/pkg_inc/op_common", "hicann/opbase/pkg_inc")
_SHAPE = (33, 100)
_TOLERANCE = 1e-4
Arrays = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Oracle:
    """An operator's inputs, from a generator of random numbers, its attributes, and its result."""

    inputs: Callable[[np.random.Generator], Arrays]
    result: Callable[..., Any]
    attributes: Mapping[str, object]


def _between(low: float, high: float, *shapes: tuple[int, ...]) -> Callable[..., Arrays]:
    """Return a function that makes arrays of float32 in a range."""

    def made(rng: np.random.Generator) -> Arrays:
        wanted = shapes or (_SHAPE,)
        return tuple(rng.uniform(low, high, each).astype(np.float32) for each in wanted)

    return made


def _whole(*shapes: tuple[int, ...]) -> Callable[..., Arrays]:
    """Return a function that makes arrays of int32."""

    def made(rng: np.random.Generator) -> Arrays:
        return tuple(rng.integers(-9, 9, each).astype(np.int32) for each in shapes)

    return made


def _of(
    result: Callable[..., Any],
    low: float = -4,
    high: float = 4,
    *shapes: tuple[int, ...],
    **attributes: object,
) -> Oracle:
    return Oracle(_between(low, high, *shapes), result, attributes)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


_error_function = np.vectorize(math.erf, otypes=[np.float64])
_PAIR = (_SHAPE, _SHAPE)
_ROWS = (_SHAPE, (33, 1))
_COLUMNS = (_SHAPE, (100,))
_MATH: Mapping[str, Oracle] = {
    "acos": _of(np.arccos, -0.9, 0.9),
    "acosh": _of(np.arccosh, 1.5, 9),
    "add": _of(np.add, -4, 4, *_ROWS),
    "asin": _of(np.arcsin, -0.9, 0.9),
    "asinh": _of(np.arcsinh),
    "atan": _of(np.arctan),
    "atan2": _of(np.arctan2, 0.5, 4, *_PAIR),
    "atanh": _of(np.arctanh, -0.9, 0.9),
    "bitwise_and": Oracle(_whole(*_PAIR), np.bitwise_and, {}),
    "bitwise_xor": Oracle(_whole(*_ROWS), np.bitwise_xor, {}),
    "ceil": _of(np.ceil),
    "cosh": _of(np.cosh),
    "div": _of(np.divide, 0.5, 4, *_COLUMNS),
    "equal": Oracle(_whole(*_PAIR), np.equal, {}),
    "erf": _of(_error_function),
    "exp": _of(np.exp),
    "expm1": _of(np.expm1),
    "floor": _of(np.floor),
    "greater": _of(np.greater, -4, 4, *_COLUMNS),
    "greater_equal": Oracle(_whole(*_PAIR), np.greater_equal, {}),
    "invert": Oracle(_whole(_SHAPE), np.invert, {}),
    "less": _of(np.less, -4, 4, *_ROWS),
    "log": _of(np.log, 0.1, 9),
    "log1p": _of(np.log1p, 0.1, 9),
    "maximum": _of(np.maximum, -4, 4, *_COLUMNS),
    "minimum": _of(np.minimum, -4, 4, *_ROWS),
    "mul": _of(np.multiply, -4, 4, *_COLUMNS),
    "neg": _of(np.negative),
    "not_equal": Oracle(_whole(*_ROWS), np.not_equal, {}),
    "pow": _of(np.power, 0.5, 3, *_PAIR),
    "reciprocal": _of(np.reciprocal, 0.5, 4),
    "rsqrt": _of(lambda x: 1 / np.sqrt(x), 0.1, 9),
    "sign": _of(np.sign),
    "sinh": _of(np.sinh),
    "sqrt": _of(np.sqrt, 0.1, 9),
    "square": _of(np.square),
    "squared_difference": _of(lambda x, y: (x - y) ** 2, -4, 4, *_ROWS),
    "sub": _of(np.subtract, -4, 4, *_PAIR),
    "tan": _of(np.tan, -1.2, 1.2),
    "tanh": _of(np.tanh),
    "trunc": _of(np.trunc),
    "truncate_div": Oracle(
        lambda rng: (_whole(_SHAPE)(rng)[0], np.full(_SHAPE, 3, np.int32)),
        lambda x, y: np.trunc(x / y),
        {},
    ),
}
_ACTIVATIONS: Mapping[str, Oracle] = {
    "elu": _of(lambda x: np.where(x > 0, x, np.expm1(x))),
    "gelu": _of(lambda x: x * _sigmoid(1.5957691216 * (x + 0.044715 * x**3))),
    "hard_swish": _of(lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "leaky_relu": _of(lambda x: np.where(x > 0, x, 0.25 * x), negative_slope=0.25),
    "mish": _of(lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "relu": _of(lambda x: np.maximum(x, 0)),
    "relu6": _of(lambda x: np.clip(x, 0, 6)),
    "sigmoid": _of(_sigmoid),
    "softplus": _of(lambda x: np.log1p(np.exp(x))),
    "softsign": _of(lambda x: x / (1 + np.abs(x))),
    "swish": _of(lambda x: x * _sigmoid(x)),
}
ORACLES = {f"ops-math/math/{name}": oracle for name, oracle in _MATH.items()} | {
    f"ops-nn/activation/{name}": oracle for name, oracle in _ACTIVATIONS.items()
}
"""What each operator computes, by its project."""


def rows() -> list[dict[str, Any]]:
    """Return what was surveyed, by name."""
    lines = DATA.read_text("utf-8").splitlines() if DATA.is_file() else []
    return sorted(map(json.loads, lines), key=lambda row: str(row["project"]))


def outcome_of(folder: Path, shared: list[Path], oracle: Oracle) -> dict[str, str]:
    """Return the outcome of an operator: right, right with findings, wrong, or refused."""
    inputs = oracle.inputs(np.random.default_rng(950))
    try:
        project = cubecore.load_op(folder, includes=shared, chip=CHIP)
        (name,) = dir(project)
        left = project[name].run(*(each.copy() for each in inputs), **oracle.attributes)
    except (CubecoreError, ValueError) as error:
        return {"outcome": "refused", "why": obstacle(str(error))}
    wanted = oracle.result(*(_wide(each) for each in inputs))
    if not np.allclose(_wide(left.outputs[0]), wanted, _TOLERANCE, _TOLERANCE / 10):
        return {"outcome": "wrong"}
    found = faults(left.launch.findings)
    return {"outcome": "right, findings", "why": found[0].id} if found else {"outcome": "right"}


def _wide(array: Any) -> Any:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def surveyed(checkouts: Path, match: str, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each operator that was not surveyed before, while there is time."""
    end, made = monotonic() + seconds, headers()
    known = {row["project"] for row in rows() if row["headers"] == made}
    shared = [checkouts / each for each in _SHARED]
    for name, oracle in ORACLES.items():
        if name in known or not re.search(match, name):
            continue
        if monotonic() > end:
            return
        outcome = outcome_of(checkouts / "hicann" / name, shared, oracle)
        yield {"project": name, "headers": made} | outcome


def main() -> None:
    """Survey operators, write what was found, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--match", default="")
    parser.add_argument("--seconds", type=float, default=500)
    for row in surveyed(**vars(parser.parse_args())):
        print(row["outcome"], row["project"], row.get("why", ""), flush=True)
        kept = [each for each in rows() if each["project"] != row["project"]]
        lines = [json.dumps(each) for each in [*kept, row]]
        DATA.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    print(dict(Counter(row["outcome"] for row in rows())))


if __name__ == "__main__":
    main()
