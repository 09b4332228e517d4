"""The package that cann-bench calls a submission by, whose operators cubecore runs.

    export CUBECORE_SUBMISSION=cann-bench/examples/direct_launch_example
    export PYTHONPATH=$PWD/integrations/cann_bench:cann-bench/src
    python -m kernel_eval.cli eval --device cpu --no-perf --task-dir cann-bench/examples/tasks

An operator is a folder of the submission, wherever it lies, with `op_plugin` and `op_kernel`: its
C++ is compiled once, without torch, and run on the chip CUBECORE_CHIP. A call that launches no
kernel is an error: nothing else may compute a result.
"""

import functools
import os
from pathlib import Path
from typing import Any

import cubecore
from cubecore.chips import default_chip
from cubecore.frontends.cpp.host_programs.torch_glue import TorchBinding, compiled_binding
from cubecore.frontends.kernels.session import ScriptSession
from cubecore.workflows.judge.values import array_of, is_tensor, tensor_of

__version__ = "1.0.0"


def _folder() -> Path:
    given = os.environ.get("CUBECORE_SUBMISSION", "")
    if not given or not Path(given).is_dir():
        got = repr(given) if given else "nothing"
        raise RuntimeError(f"CUBECORE_SUBMISSION must name the submission's folder, got {got}")
    return Path(given).resolve()


def _operators() -> dict[str, Path]:
    plugins = sorted(_folder().rglob("op_plugin"))
    return {each.parent.name: each.parent for each in plugins if each.is_dir()}


def _never(name: str, *_: Any) -> Any:
    raise RuntimeError(f"{name}: an operator project is judged by cubecore judge")


@functools.cache
def _binding(folder: Path) -> TorchBinding:
    parts = (folder / "op_plugin", folder / "op_kernel")
    sources = [file for part in parts for file in sorted(part.glob("*.cpp"))]
    return compiled_binding(sources, _never, arch=cubecore.chip(default_chip()).arch)


def _called(name: str, folder: Path, *arguments: Any, **words: Any) -> Any:
    # The suite names arguments as its reference does; a binding may have other names for them.
    values = (*arguments, *words.values())
    given = [array_of(each).copy() if is_tensor(each) else each for each in values]
    with ScriptSession().collecting() as session:
        left = _binding(folder).call(name, given).value
    if not session.runs:
        raise RuntimeError(f"{name} launched no kernel")
    return tuple(map(tensor_of, left)) if isinstance(left, list) else tensor_of(left)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    operators = _operators()
    if name not in operators:
        raise AttributeError(f"cann_bench has no operator {name}: {', '.join(operators) or 'none'}")
    return functools.partial(_called, name, operators[name])


def __dir__() -> list[str]:
    return sorted(_operators())
