"""Bindings of operators for torch: a task's own C++, whose calls of operators come to Python."""

import hashlib
import importlib.util
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

_PLAIN_RANDN, _PLAIN_UNIFORM = torch.randn, torch.Tensor.uniform_
_HERE = Path(__file__).parent
_PREFIX = """#include <torch/csrc/autograd/custom_function.h>
#include <torch/extension.h>
#include <torch/library.h>
"""
Called = Callable[[str, Sequence[Any]], None]


def stand_ins(called: Called) -> None:
    """Register the modules that a task imports and this machine does not have."""
    for name in ("torch_npu", "torch_npu.contrib", "torch_npu.contrib.transfer_to_npu"):
        sys.modules[name] = ModuleType(name)
    sys.modules["torch_npu.contrib"].__dict__["transfer_to_npu"] = None
    torch.randn = _randn
    torch.Tensor.uniform_ = _uniform  # type: ignore[method-assign]
    suite = ModuleType("cubecore_suite")
    suite.__dict__["call"] = called
    sys.modules["cubecore_suite"] = suite


def _randn(*shape: Any, dtype: torch.dtype | None = None, **words: Any) -> torch.Tensor:
    """Return normal values; of integers, which torch lacks on the CPU, those of the NPU."""
    if dtype is None or dtype.is_floating_point or dtype.is_complex:
        return _PLAIN_RANDN(*shape, dtype=dtype, **words)
    return _PLAIN_RANDN(*shape, **words).to(dtype)


def _uniform(tensor: torch.Tensor, *bounds: float, **words: Any) -> torch.Tensor:
    """Fill a tensor with uniform values; integers too, which torch lacks on the CPU."""
    if tensor.is_floating_point():
        return _PLAIN_UNIFORM(tensor, *bounds, **words)
    drawn = _PLAIN_UNIFORM(torch.empty(tensor.shape), *bounds, **words)
    return tensor.copy_(drawn)


def bindings(text: str, name: str, work: Path) -> ModuleType:
    """Return the module of a binding's C++ text, compiled unless `work` has it already."""
    digest = hashlib.sha256((text + _helper()).encode()).hexdigest()[:16]
    library = work / digest / f"{name}.so"
    if not library.is_file():
        library.parent.mkdir(parents=True, exist_ok=True)
        unit, made = library.with_suffix(".cpp"), library.with_suffix(".part")
        unit.write_text(text, "utf-8")
        prefix = _precompiled(work)
        command = [*_command(), "-include", str(prefix), "-shared", "-fPIC", str(unit)]
        _done([*command, "-o", str(made), *_libraries()])
        made.replace(library)
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


def _helper() -> str:
    return (_HERE / "pytorch_npu_helper.hpp").read_text("utf-8")


def _command() -> list[str]:
    from torch.utils.cpp_extension import include_paths

    search = [*include_paths(), sysconfig.get_paths()["include"], str(_HERE)]
    return [
        os.environ.get("CXX", "g++"),
        "-std=c++20",
        "-O0",
        "-w",
        "-DTORCH_EXTENSION_NAME=kernel_gen_ops",
        *(f"-I{path}" for path in search),
    ]


def _libraries() -> list[str]:
    from torch.utils.cpp_extension import library_paths

    folder = library_paths()[0]
    names = ("c10", "torch_cpu", "torch", "torch_python")
    return [f"-L{folder}", f"-Wl,-rpath,{folder}", *(f"-l{name}" for name in names)]


def _precompiled(work: Path) -> Path:
    """Return the header of torch, compiled beforehand."""
    prefix = work / "torch_prefix.h"
    ready = prefix.with_suffix(".h.gch")
    if not ready.is_file():
        prefix.write_text(_PREFIX)
        made = work / "torch_prefix.part"
        _done([*_command(), "-fPIC", "-x", "c++-header", str(prefix), "-o", str(made)])
        made.replace(ready)
    return prefix


def _done(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        raise RuntimeError(f"the binding does not compile: {(errors or ['?'])[0]}")
