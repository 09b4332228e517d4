"""Bindings of operators for torch: a task's own C++, whose calls of operators come to Python."""

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

_PLAIN_RAND = torch.rand
_PLAIN_RANDN, _PLAIN_UNIFORM = torch.randn, torch.Tensor.uniform_
_HERE = Path(__file__).parent
_PREFIX = """#include <torch/csrc/autograd/custom_function.h>
#include <torch/extension.h>
#include <torch/library.h>
#include <map>
#include <tuple>
#include <vector>
#include "pytorch_npu_helper.hpp"
"""
Called = Callable[[str, Sequence[Any]], None]


def stand_ins(called: Called) -> None:
    """Register the modules that a task imports and this machine does not have."""
    for name in ("torch_npu", "torch_npu.contrib", "torch_npu.contrib.transfer_to_npu"):
        sys.modules[name] = ModuleType(name)
    sys.modules["torch_npu.contrib"].__dict__["transfer_to_npu"] = None
    torch.randn, torch.rand = _randn, _rand
    torch.Tensor.uniform_ = _uniform  # type: ignore[method-assign]
    suite = ModuleType("cubecore_suite")
    suite.__dict__["call"] = called
    sys.modules["cubecore_suite"] = suite


def _randn(*shape: Any, dtype: torch.dtype | None = None, **words: Any) -> torch.Tensor:
    """Return normal values; of integers, which torch lacks on the CPU, those of the NPU."""
    if dtype is None or dtype.is_floating_point or dtype.is_complex:
        return _PLAIN_RANDN(*shape, dtype=dtype, **words)
    return _PLAIN_RANDN(*shape, **words).to(dtype)


def _rand(*shape: Any, dtype: torch.dtype | None = None, **words: Any) -> torch.Tensor:
    """Return uniform values; of integers too."""
    if dtype is None or dtype.is_floating_point or dtype.is_complex:
        return _PLAIN_RAND(*shape, dtype=dtype, **words)
    return _PLAIN_RAND(*shape, **words).to(dtype)


def _uniform(tensor: torch.Tensor, *bounds: float, **words: Any) -> torch.Tensor:
    """Fill a tensor with uniform values; integers too, which torch lacks on the CPU."""
    if tensor.is_floating_point():
        return _PLAIN_UNIFORM(tensor, *bounds, **words)
    drawn = _PLAIN_UNIFORM(torch.empty(tensor.shape), *bounds, **words)
    return tensor.copy_(drawn)


def binding(text: str, name: str, work: Path) -> ModuleType:
    """Return the module of a binding's C++ text, compiled unless `work` has it already."""
    own = _own_name(text, name)
    library = work / f"{own}.so"
    if not library.exists():
        compile_bindings([text], name, work)
    spec = importlib.util.spec_from_file_location(own, library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


def _own_name(text: str, name: str) -> str:
    return f"{name}_{hashlib.sha256((text + _helper()).encode()).hexdigest()[:16]}"


def compile_bindings(texts: Sequence[str], name: str, work: Path) -> None:
    """Compile bindings as one unit, which costs little more than one of them; link each name to it.

    Raises
    ------
    RuntimeError
        If they do not compile.
    """
    owns = {_own_name(text, name): text for text in texts}
    owns = {own: text for own, text in owns.items() if not (work / f"{own}.so").exists()}
    if not owns:
        return
    whole = "\n".join(_inside(own, text, name) for own, text in owns.items())
    library = work / f"unit_{hashlib.sha256(whole.encode()).hexdigest()[:16]}.so"
    unit, made = library.with_suffix(".cpp"), library.with_suffix(".part")
    unit.write_text(whole, "utf-8")
    command = [*_command(), "-include", str(_precompiled(work)), "-shared", "-fPIC", str(unit)]
    _done([*command, "-o", str(made), *_libraries()])
    made.replace(library)
    for own in owns:
        (work / f"{own}.so").symlink_to(library.name)


def _inside(own: str, text: str, name: str) -> str:
    """Return a binding in a namespace and a module of its own; what it includes is known."""
    text = re.sub(r"(?m)^[ \t]*#[ \t]*include.*$", "", text)
    begin = rf"PYBIND11_MODULE\(\s*(?:{name}|TORCH_EXTENSION_NAME)"
    text = re.sub(begin, f"PYBIND11_MODULE({own}", text)
    return f"namespace suite_{own} {{\n{text}\n}}"


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
        *(f"-I{path}" for path in search),
    ]


def _libraries() -> list[str]:
    from torch.utils.cpp_extension import library_paths

    folder = library_paths()[0]
    names = ("c10", "torch_cpu", "torch", "torch_python")
    return [f"-L{folder}", f"-Wl,-rpath,{folder}", *(f"-l{name}" for name in names)]


def _precompiled(work: Path) -> Path:
    """Return the header of torch, compiled beforehand."""
    prefix = work / "torch_bindings.h"
    ready = prefix.with_suffix(".h.gch")
    if not ready.is_file():
        prefix.write_text(_PREFIX)
        made = work / "torch_bindings.part"
        _done([*_command(), "-fPIC", "-x", "c++-header", str(prefix), "-o", str(made)])
        made.replace(ready)
    return prefix


def _done(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        raise RuntimeError(f"the binding does not compile: {(errors or ['?'])[0]}")
