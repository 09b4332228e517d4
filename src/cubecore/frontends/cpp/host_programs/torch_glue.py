"""Bindings for PyTorch called without PyTorch: compiled to programs with a main of their own.

The program asks for the name and the arguments of one call, runs it, and tells the result. Tensors
lie in the program's device memory; an operator that the binding calls by its aclnn function runs
from here, on views of them.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import element_type
from cubecore.errors import unable
from cubecore.frontends.cpp.files import write_at_once
from cubecore.frontends.cpp.host_programs.driver import compile_and_link
from cubecore.frontends.cpp.host_programs.programs import Memory, run_built_with
from cubecore.frontends.cpp.host_programs.torch_prefix import torch_main, torch_prefix
from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions
from cubecore.frontends.cpp.toolchain.cache import digest, filled, folder, scratch_folder, used
from cubecore.frontends.cpp.toolchain.compiler import compiler
from cubecore.frontends.cpp.toolchain.generated.header_folder import headers
from cubecore.frontends.kernels.session import is_blank, sampled_count

HEADERS = (
    *("torch/extension.h", "torch/torch.h", "torch/all.h", "torch/library.h", "torch/script.h"),
    *("torch/types.h", "torch/csrc/autograd/custom_function.h", "torch/csrc/autograd/variable.h"),
    *("ATen/ATen.h", "ATen/Operators.h", "ATen/Tensor.h", "ATen/core/Tensor.h", "ATen/Functions.h"),
    *("c10/util/Optional.h", "c10/core/ScalarType.h", "c10/util/Exception.h", "c10/core/Scalar.h"),
    *("pybind11/pybind11.h", "pybind11/stl.h", "pytorch_npu_helper.hpp", "torch_npu/torch_npu.h"),
    *("torch_npu/csrc/core/npu/NPUStream.h", "torch_npu/csrc/core/npu/NPUGuard.h"),
    *("torch_npu/csrc/framework/OpCommand.h", "torch_npu/csrc/framework/utils/OpAdapter.h"),
    *("torch_npu/csrc/aten/CustomFunctions.h", "torch_npu/csrc/include/ops.h"),
    *(
        "torch_npu/csrc/framework/utils/RandomOpAdapter.h",
        "torch_npu/csrc/aten/NPUNativeFunctions.h",
    ),
    *("op_plugin/OpApiInterface.h", "op_plugin/utils/op_api_common.h", "acl/acl_op_compiler.h"),
)
"""The names under which bindings include what `cubecore/torch` has, among others of PyTorch's."""
_OTHERS = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*[<\"]"
    r"((?:(?:torch|ATen|c10|pybind11|torch_npu|op_plugin)/|aclnn(?:op/|_))[\w./-]+)[>\"]",
    re.MULTILINE,
)
"""An include of a header of PyTorch's or its extension's, which a binding may make of any, or of
one that an operator's build writes for its call in two steps."""
_TWO_STEP = re.compile(r"\b(aclnn\w+?)GetWorkspaceSize\s*\(")
"""The first step of an operator's call."""
_INCLUDED = '#pragma once\n#include "cubecore/torch/two_step.h"\n'
_STEPS = """template <typename... A>
aclnnStatus {name}GetWorkspaceSize(const A&... given) {{
  return ::cubecore::glue::prepared("{name}", given...);
}}
inline aclnnStatus {name}(void*, uint64_t, aclOpExecutor* executor, aclrtStream) {{
  return ::cubecore::glue::run_prepared("{name}", executor);
}}
"""
_DEVICE = re.compile(r"__aicore__|<<<|__global__")
"""Words of a file that is compiled for the device, too, behind a prefix of its own."""
_TYPES = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    *("", "complex64", "complex128", "bool", "", "", "", "bfloat16"),
)
"""Types of arrays by their number in c10::ScalarType."""
RunOperator = Callable[[str, list[Any], Sequence[bool]], Sequence[NDArray[np.bool_] | None]]
"""Runs an operator on arguments in order, each with a mark if nothing of it was written.

It returns for each argument which bytes it has then, None for those that it left or wrote whole.
"""


@dataclass(frozen=True, eq=False, slots=True)
class BindingResult:
    """The result of a call: values, and for each of its arrays which bytes were written."""

    value: Any
    written: tuple[NDArray[np.bool_], ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class TorchBinding:
    """A compiled binding: its program, and what runs the operators that it calls."""

    program: Path
    run_operator: RunOperator
    timeout_s: float = 60.0

    def call(
        self, name: str, arguments: Sequence[Any], words: Mapping[str, Any] | None = None
    ) -> BindingResult:
        """Call a function of the binding; arrays among its arguments may be changed.

        Raises
        ------
        RequestError
            If the binding has no such function, or refuses its arguments.
        KernelError
            If a kernel fails, or the program ends early.
        """
        caller = _Call(name, arguments, words or {}, self.run_operator)
        asked = CppLaunchOptions(timeout_s=self.timeout_s)
        run_built_with(self.program, asked, caller)
        if caller.result is None:
            raise unable(name, f"the binding {name} ended without a result")
        return caller.result


def compiled_binding(
    sources: Sequence[Path], run_operator: RunOperator, *, arch: str, timeout_s: float = 60.0
) -> TorchBinding:
    """Compile the files of a binding, with the kernels that they launch, unless the cache has them.

    Raises
    ------
    RequestError
        If a file does not compile.
    """
    tool = compiler()
    content = [tool.identity, headers(), _INCLUDED, _STEPS, arch, *HEADERS]
    for path in sources:
        near = sorted(p for p in path.parent.rglob("*") if p.suffix in {".h", ".hpp"})
        content += [
            part
            for each in (path, *near)
            for part in (each.name, each.read_text("utf-8", "replace"))
        ]
    program = folder() / f"binding-{digest(content)}"
    if program.is_file() or filled("binding", sources, arch):
        used(program)
        return TorchBinding(program, run_operator, timeout_s)
    with scratch_folder() as scratch:
        work = Path(scratch)
        texts = [path.read_text("utf-8", "replace") for path in sources]
        asked = {name for text in texts for name in _OTHERS.findall(text) if ".." not in name}
        called = sorted({name for text in texts for name in _TWO_STEP.findall(text)})
        included = _INCLUDED + "".join(_STEPS.format(name=name) for name in called)
        for name in {*HEADERS, *asked}:
            (work / "torch" / name).parent.mkdir(parents=True, exist_ok=True)
            (work / "torch" / name).write_text("#pragma once\n#include <cubecore_steps.h>\n")
        (work / "torch" / "cubecore_steps.h").write_text(included)
        words = [*map(str, sources), str(torch_main()), "-I", str(work / "torch")]
        words += [f"-I{each}" for each in {str(path.parent) for path in sources}]
        # A file that includes none of these headers is to fail as it does elsewhere.
        prefix = torch_prefix() if all(map(_is_plain_host, texts)) else None
        words += ["-include", str(prefix)] if prefix is not None else []
        built = work / "binding"
        compile_and_link([*words, f"--npu-arch=dav-{arch}", "-o", str(built)])
        write_at_once(program, built.read_bytes(), 0o755)
    return TorchBinding(program, run_operator, timeout_s)


def _is_plain_host(text: str) -> bool:
    """Return whether a file has host code alone, and includes a header of PyTorch's."""
    return bool(_OTHERS.search(text)) and not _DEVICE.search(text)


@dataclass(eq=False, slots=True)
class _Call:
    """One call of a function: its arguments in the program's memory, and its result."""

    name: str
    arguments: Sequence[Any]
    words: Mapping[str, Any]
    run_operator: RunOperator
    text: bytes = b""
    result: BindingResult | None = None
    given: list[tuple[Array, int]] = field(default_factory=list)

    def answer(self, memory: Memory, text: str) -> int | bytes:
        """Answer what the program says of its call."""
        kind, _, rest = text.partition(" ")
        if kind == "size":
            self.text = self._written(memory).encode()
            return len(self.text)
        if kind == "call":
            return self.text
        if kind == "operator":
            self._operator(memory, rest)
        elif kind == "result":
            self._finish(memory, rest)
        elif kind == "unknown":
            known = ", ".join(rest.split()) or "none"
            raise unable(self.name, f"the binding has no function {self.name}, only {known}")
        else:
            raise unable(self.name, f"the binding {self.name}: {rest}")
        return 0

    def _written(self, memory: Memory) -> str:
        """Return the call's name and arguments as the program reads them."""
        plain = [self._one(memory, each) for each in self.arguments]
        named = [f"{word} {self._one(memory, each)}" for word, each in self.words.items()]
        return " ".join([self.name, str(len(plain)), *plain, *named])

    def _one(self, memory: Memory, value: Any) -> str:
        if value is None:
            return "n"
        if isinstance(value, (bool, np.bool_)):
            return f"b {int(value)}"
        if isinstance(value, (int, np.integer)):
            return f"i {int(value)}"
        if isinstance(value, (float, np.floating)):
            return f"f {float(value)!r}"
        if isinstance(value, str):
            return f"s x{value.encode().hex()}"
        if isinstance(value, (list, tuple)):
            return " ".join([f"L {len(value)}", *(self._one(memory, each) for each in value)])
        if isinstance(value, np.dtype):
            return f"d {_TYPES.index(value.name)}"
        if not isinstance(value, np.ndarray):
            sentence = f"{self.name}: a binding takes no {type(value).__name__}"
            raise unable(self.name, sentence)
        return self._array(memory, value)

    def _array(self, memory: Memory, array: Array) -> str:
        known = next((address for one, address in self.given if one is array), None)
        if known is None:
            known = memory.allocate(array.nbytes) if array.nbytes else 0
            if array.nbytes and not known:
                raise unable(self.name, f"{array.nbytes} B do not fit the memory of a program")
            if known and not is_blank():
                held = memory.bytes_at(known, array.nbytes)
                held.data[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                held.valid[:] = 1
            self.given.append((array, known))
        extents = " ".join(map(str, array.shape))
        return f"T {known} {_TYPES.index(array.dtype.name)} {array.ndim} {extents}".rstrip()

    def _operator(self, memory: Memory, text: str) -> None:
        """Run an operator on views of the program's memory; mark what it wrote."""
        name, count, *rest = text.split()
        reader = _Reader(iter(rest), memory)
        arguments = [reader.next() for _ in range(int(count))]
        marks = [_is_unwritten(argument) for argument in arguments]
        plain = [_plain(argument) for argument in arguments]
        masks = self.run_operator(name, plain, marks)
        for argument, mask in zip(arguments, masks, strict=True):
            if isinstance(argument, _View):
                argument.mark(mask)
            elif isinstance(argument, list):
                for each in argument:
                    if isinstance(each, _View):
                        each.mark(None)

    def _finish(self, memory: Memory, text: str) -> None:
        """Take the result, and give arrays that the call changed what it left in them."""
        reader = _Reader(iter(text.split()), memory)
        value = reader.next()
        if is_blank():
            self.result = BindingResult(_sized(value))
            return
        written = tuple(self._marks(memory, view) for view in _views(value))
        for array, address in self.given:
            if not address:
                continue
            raw = memory.bytes_at(address, array.nbytes).data
            left = raw.view(array.dtype).reshape(array.shape)
            if array.flags.writeable and left.tobytes() != array.tobytes():
                array[...] = left
        self.result = BindingResult(_copied(value), written)

    def _marks(self, memory: Memory, view: "_View") -> NDArray[np.bool_]:
        """Return which bytes of a result were written; where some blocks ran, stored to at all."""
        if not sampled_count() or not view.address:
            return np.asarray(view.valid != 0)
        return memory.stored_at(view.address, view.valid.size)


@dataclass(eq=False, slots=True)
class _View:
    """A tensor of the program at an address: a view of its memory, and what was written there."""

    address: int
    array: Array
    valid: NDArray[np.uint8]

    def mark(self, mask: NDArray[np.bool_] | None) -> None:
        """Take bytes as written: those of a mask, or all; blank ones are already."""
        if is_blank():
            return
        if mask is None or mask.size != self.valid.size:
            self.valid[:] = 1
        else:
            self.valid[:] |= mask.astype(np.uint8)


@dataclass(eq=False, slots=True)
class _Reader:
    """The values that a program writes."""

    words: Iterator[str]
    memory: Memory

    def next(self) -> Any:
        """Return the next value."""
        kind = next(self.words)
        if kind == "n":
            return None
        if kind == "L":
            return [self.next() for _ in range(int(next(self.words)))]
        word = next(self.words)
        if kind == "T":
            return self._view(int(word))
        if kind == "f":
            return float(word)
        if kind == "s":
            return bytes.fromhex(word[1:]).decode("utf-8", "replace")
        if kind == "d":
            return np.dtype(element_type(_TYPES[int(word)]).numpy)
        return bool(int(word)) if kind == "b" else int(word)

    def _view(self, address: int) -> _View:
        name, rank = _TYPES[int(next(self.words))], int(next(self.words))
        dtype = np.dtype(name) if name != "bfloat16" else element_type(name).numpy
        shape = tuple(int(next(self.words)) for _ in range(rank))
        strides = tuple(int(next(self.words)) * dtype.itemsize for _ in range(rank))
        reach = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        size = reach + dtype.itemsize if math.prod(shape) else 0
        held = self.memory.bytes_at(address, size) if size else None
        try:
            if held is None:
                return _View(0, np.zeros(shape, dtype), np.zeros(0, np.uint8))
            raw = held.data[: size - size % dtype.itemsize].view(dtype)
            array = np.lib.stride_tricks.as_strided(raw, shape, strides)
            return _View(address, array, held.valid)
        except ValueError:  # sizes that overflow are often those of freed memory: not told
            sentence = f"the binding has a tensor of {rank} axes, whose bytes cannot be counted"
            raise unable("the binding", sentence) from None


def _views(value: Any) -> list[_View]:
    if isinstance(value, _View):
        return [value]
    return [view for each in value for view in _views(each)] if isinstance(value, list) else []


def _plain(value: Any) -> Any:
    if isinstance(value, _View):
        return value.array
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _copied(value: Any) -> Any:
    if isinstance(value, _View):
        return value.array.copy()
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _sized(value: Any) -> Any:
    """Return a value with arrays that have shapes and types alone."""
    if isinstance(value, _View):
        return np.broadcast_to(np.zeros((), value.array.dtype), value.array.shape)
    return [_sized(each) for each in value] if isinstance(value, list) else value


def _is_unwritten(value: Any) -> bool:
    views = _views(value)
    return bool(views) and not is_blank() and not any(view.valid.any() for view in views)
