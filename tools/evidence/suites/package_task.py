"""A machine-written operator, run on small inputs of the types that it registers.

`python -m tools.evidence.suites.package_task FOLDER` prints one line of JSON: what the operator
project of the folder came to.
"""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cubecore
from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.operator_projects.element_types import BY_NUMBER, numpy_type
from cubecore.frontends.cpp.operator_projects.operator_project import Operator
from cubecore.frontends.cpp.operator_projects.registration import (
    DYNAMIC,
    OPTIONAL,
    OperatorParameter,
    Registration,
)

_SHAPES = ((8, 256), (2, 4, 8, 16), (2048,), (16, 16))
_TIMEOUT_S = 20
_VALUES: dict[str, Any] = {
    "int": 1,
    "float": 1.0,
    "bool": True,
    "str": "",
    "list_int": [1],
    "list_float": [1.0],
    "list_bool": [True],
}


def verdict(folder: Path) -> dict[str, Any]:
    """Return what the first operator of a project came to."""
    try:
        project = cubecore.load_op(folder, timeout_s=_TIMEOUT_S)
    except CubecoreError as error:
        return {"outcome": "does not compile", "why": str(error)}
    told: dict[str, Any] = {"outcome": "refused", "why": "no inputs of its types"}
    for shape in _SHAPES:
        told = _tried(project[dir(project)[0]], shape)
        if told["outcome"] != "refused":
            break
    return told


def _tried(operator: Operator, shape: tuple[int, ...]) -> dict[str, Any]:
    own = operator.registration
    words: dict[str, Any] = dict(_inputs(own, shape))
    words |= {a.name: _VALUES.get(a.type, 1) for a in own.attributes if a.default is None}
    if not own.infers_shapes:
        words |= {one.name: _array(one, shape, 0) for one in own.outputs}
    try:
        left = operator.run(**words)
    except CubecoreError as error:
        return {"outcome": _kind(str(error)), "why": str(error)}
    findings = sorted({finding.id for finding in left.launch.findings})
    if findings:
        return {"outcome": "findings", "findings": findings}
    return {"outcome": "clean"}


def _kind(said: str) -> str:
    """Return how a call ended that left no result."""
    if " does not compile: " in said:
        return "does not compile"
    if "deadlock" in said:
        return "deadlock"
    if "did not end within" in said:
        return "endless"
    if "ended with" in said or " ended by " in said:
        return "crash"
    return "refused"


def _inputs(own: Registration, shape: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    for number, one in enumerate(own.inputs):
        if one.kind == OPTIONAL:
            continue
        array = _array(one, shape, number)
        yield one.name, [array, array.copy()] if one.kind == DYNAMIC else array


def _array(one: OperatorParameter, shape: tuple[int, ...], seed: int) -> Any:
    known = BY_NUMBER.get(one.types[0] if one.types else 0)
    dtype = numpy_type(known) if known else np.dtype(np.float32)
    values = np.arange(math.prod(shape)) * 5 % (7 + seed) + 1
    return values.reshape(shape).astype(dtype)


def main() -> None:
    """Print what a project came to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    print(f"\n{json.dumps(verdict(parser.parse_args().folder))}", flush=True)


if __name__ == "__main__":
    main()
