"""A launch in words: the arguments of a C++ kernel as the command line gives them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import element_type
from cubecore.errors import CubecoreError, did_you_mean, refuse, unable, unreadable, unwritable
from cubecore.frontends.cpp.files import write_at_once
from cubecore.frontends.cpp.launch.argument_types import given_type, note_on, typed_bytes
from cubecore.frontends.cpp.launch.dimensions import Dimensions, size_of_text
from cubecore.frontends.cpp.launch.kernels import CppKernel, kernel_of
from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions
from cubecore.frontends.cpp.launch.signature import EntryParameter, python_name, tiling_name
from cubecore.frontends.cpp.rewriting.source import source_of, structs_text

_TRUTH = {"true": True, "false": False}
_FORM = "be NAME=TYPE:SHAPE[:FILE], as z=float32:16384:z.npy"


@dataclass(eq=False, slots=True)
class Output:
    """An array that the kernel fills, and the file that takes it."""

    name: str
    values: Array
    file: str | None
    shown: str


@dataclass(eq=False, slots=True)
class CppKernelCall:
    """A kernel and its arguments, ready to be launched."""

    kernel: CppKernel
    blocks: int | Dimensions
    arguments: dict[str, Any]
    outputs: list[Output] = field(default_factory=list)

    def run(self) -> None:
        """Launch the kernel, and write what it left to its files.

        Raises
        ------
        KernelError
            If the kernel fails.
        """
        self.kernel[self.blocks](**self.arguments)
        for output in self.outputs:
            if output.file is not None:
                write(output.file, output.values)


def call_of(path: str, asked: CppLaunchOptions, options: Mapping[str, Any]) -> CppKernelCall:
    """Return the launch that was asked for; `options` are those of kernels.

    Raises
    ------
    RequestError
        If a file, an entry or an argument is not usable.
    """
    source = source_of(path, defined(asked.defines))
    auto_sync = asked.auto_sync == "on"
    kernel = kernel_of(source, asked.entry, verbose=asked.verbose, auto_sync=auto_sync, **options)
    blocks = _blocks(kernel, asked)
    parameters = {p.name: p for p in kernel.parameters}
    arguments: dict[str, Any] = {}
    for text in asked.arguments:
        given, sign, value = text.partition("=")
        if not (sign and value):
            raise refuse("--arg", "be NAME=VALUE or NAME=FILE", repr(text))
        name = python_name(given)
        if name in arguments:
            raise unable("--arg", f"--arg {name} is given twice")
        arguments[name] = _argument(_parameter_named(name, parameters, kernel), value)
    if asked.tiling_data is not None:
        from cubecore.frontends.cpp.launch.tiling_data import filled

        text = structs_text(source, asked.tiling_key)
        tiling = parameters[_tiling_name(kernel)]
        arguments[tiling.name] = typed_bytes(tiling, filled(text, asked.tiling_data))
    outputs = [_output(text, parameters, kernel, arguments) for text in asked.outputs]
    # An output that was given no contents must be written whole; one with contents may be in part.
    fresh = [o.name for o in outputs if o.name not in _names(asked.arguments)]
    for output in outputs:
        arguments[output.name] = output.values
    scratch = tuple(_scratch(text, kernel, arguments) for text in asked.scratch)
    written = tuple(_written(text, kernel, arguments) for text in asked.marked_outputs)
    _require_all(kernel, parameters, arguments)
    marked = kernel.using(outputs=tuple(dict.fromkeys([*fresh, *written])), scratch=scratch)
    changed = marked.changed(timeout_s=asked.timeout_s, tiling_key=asked.tiling_key)
    return CppKernelCall(changed, blocks, arguments, outputs)


def _blocks(kernel: CppKernel, asked: CppLaunchOptions) -> int | Dimensions:
    """Return the blocks of a launch; of a kernel of threads its grid and its threads."""
    if not kernel.is_of_threads:
        if asked.grid is not None or asked.block is not None:
            said = f"{kernel.name} is a kernel of cores, not of threads"
            raise unable("--grid", f"--grid and --block do not apply: {said}", "use --blocks")
        if asked.blocks is None:
            raise unable("--blocks", f"a launch of {kernel.name} needs --blocks")
        return asked.blocks
    if asked.grid is None or asked.block is None:
        said = f"a launch of {kernel.name}, a kernel of threads, needs --grid and --block"
        raise unable("--grid", said)
    sizes = size_of_text("--grid", asked.grid), size_of_text("--block", asked.block)
    return Dimensions(*sizes, asked.dynamic_ub)


def _tiling_name(kernel: CppKernel) -> str:
    """Return the parameter that takes tiling data: the one called so, else the last pointer."""
    pointers = [p.name for p in kernel.parameters if p.letter == "p"]
    if not pointers:
        raise unable("--tiling-data", f"--tiling-data: {kernel.name} has no pointer parameter")
    return tiling_name(kernel.parameters) or pointers[-1]


def _names(arguments: Sequence[str]) -> set[str]:
    return {python_name(text.partition("=")[0]) for text in arguments}


def defined(texts: Sequence[str]) -> dict[str, object]:
    """Return the macros of -D by their names.

    Raises
    ------
    RequestError
        If a text is no macro.
    """
    values: dict[str, object] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not name.replace("_", "a").isalnum() or name[0].isdigit():
            raise refuse("-D", "be NAME or NAME=VALUE", repr(text))
        values[name] = value if sign else None
    return values


def _parameter_named(
    name: str, parameters: Mapping[str, EntryParameter], kernel: CppKernel
) -> EntryParameter:
    parameter = parameters.get(name)
    if parameter is None:
        need = f"name a parameter of {kernel.name} ({', '.join(parameters) or 'none'})"
        raise refuse("--arg", need, name, did_you_mean(name, parameters))
    return parameter


def _require_all(
    kernel: CppKernel, parameters: Mapping[str, EntryParameter], given: Mapping[str, Any]
) -> None:
    missing = [name for name in parameters if name not in given]
    if missing:
        sentence = f"{kernel.name} has no value for {missing[0]}"
        raise unable(kernel.name, sentence, f"give --arg {missing[0]}=...")


def _argument(parameter: EntryParameter, text: str) -> Any:
    if parameter.letter in {"p", "s"}:
        array = loaded(parameter.name, text)
        if parameter.letter == "s":
            return array.tobytes()
        return array if text.endswith(".npy") else typed_bytes(parameter, array)
    if parameter.letter == "b" and text in _TRUTH:
        return _TRUTH[text]
    try:
        return float(text) if parameter.letter == "f" else int(text, 0)
    except ValueError:
        raise refuse(parameter.name, f"be {parameter.meaning}", repr(text)) from None


def loaded(name: str, path: str) -> Array:
    """Return an array from a .npy file, or a file's bytes.

    Raises
    ------
    RequestError
        If the file cannot be read, or is no whole .npy file.
    """
    try:
        if not path.endswith(".npy"):
            return np.fromfile(path, np.uint8)
        return np.ascontiguousarray(np.load(path, allow_pickle=False))
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, EOFError) as error:
        need = "be a whole .npy file"
        raise refuse(f"{name} {path}", need, str(error).splitlines()[0]) from None


def _scratch(text: str, kernel: CppKernel, arguments: dict[str, Any]) -> str:
    """Return the name of a workspace; one with a size becomes an argument."""
    given, sign, size = text.partition(":")
    is_size = size.isascii() and size.isdigit() and size.strip("0")
    if not given or (sign and not is_size):
        raise refuse("--scratch", "be NAME or NAME:BYTES, as workspace:65536", repr(text))
    name = python_name(given)
    kernel.require_array("--scratch", name)
    if not sign:
        if name not in arguments:
            sentence = f"--scratch {name} has no size"
            raise unable("--scratch", sentence, f"--scratch {name}:BYTES, or --arg {name}=FILE")
        return name
    if name in arguments:
        sentence = f"--scratch {text} allocates {name}, which has an array"
        raise unable("--scratch", sentence, f"--scratch {name} marks that")
    try:
        arguments[name] = np.zeros(int(size), np.uint8)
    except (MemoryError, OverflowError, ValueError):
        sentence = f"--scratch {name} has {size} B, more than fit in memory"
        raise unable("--scratch", sentence) from None
    return name


def _written(text: str, kernel: CppKernel, arguments: Mapping[str, Any]) -> str:
    """Return the name of an array that the kernel must write whole."""
    name = python_name(text)
    kernel.require_array("--outputs", name)
    if name not in arguments:
        remedy = f"give --arg {name}=FILE, or --out-arg {name}=TYPE:SHAPE alone"
        raise unable("--outputs", f"--outputs {name} has no array", remedy)
    return name


def _output(
    text: str, parameters: Mapping[str, EntryParameter], kernel: CppKernel, given: Mapping[str, Any]
) -> Output:
    name, sign, rest = text.partition("=")
    parameter = _parameter_named(python_name(name), parameters, kernel)
    if parameter.letter != "p":
        raise refuse(f"--out-arg {parameter.name}", "be a pointer of the kernel", parameter.meaning)
    output = output_of(f"{parameter.name}{sign}{rest}")
    if output.name in given:
        note_on(parameter, given_type(output.name, given[output.name]))
        raw = _same(output.name, given[output.name], output.values)
        output.values.reshape(-1).view(np.uint8)[:] = raw
    return output


def output_of(text: str) -> Output:
    """Return the array that --out-arg asks for, all zeros.

    Raises
    ------
    RequestError
        If the text has another form, or the file's folder does not exist.
    """
    name, sign, rest = text.partition("=")
    kind, _, rest = rest.partition(":")
    shape, _, file = rest.partition(":")
    if not (sign and kind and shape):
        raise refuse("--out-arg", _FORM, repr(text))
    extents = shape.replace("x", ",").split(",")
    if not all(e.isascii() and e.isdigit() and 0 < len(e) < 12 for e in extents):
        raise refuse(f"--out-arg {name}", _FORM, repr(text))
    try:
        element = element_type(kind)
    except CubecoreError:
        raise refuse(f"--out-arg {name}", "be of a type that the chip has", kind) from None
    dtype = element.numpy if element.bits >= 8 else np.dtype(np.uint8)
    if file:
        _require_writable(name, file)
    try:
        values = np.zeros([int(e) for e in extents], dtype)
    except (MemoryError, ValueError):
        size = prod(map(int, extents)) * dtype.itemsize
        raise unable(name, f"--out-arg {name} has {size} B, more than fit in memory") from None
    return Output(name, values, file or None, f"{kind}[{shape}]")


def _same(name: str, first: Array, values: Array) -> Array:
    raw = first.reshape(-1).view(np.uint8)
    if raw.size != values.nbytes:
        raise refuse(f"--out-arg {name}", f"have the {raw.size} B of --arg", f"{values.nbytes} B")
    return raw


def _require_writable(name: str, file: str) -> None:
    parent = Path(file).parent
    try:
        there = parent.is_dir()
    except OSError as error:  # too long
        raise unwritable(file, error) from None
    if not there:
        raise unable(name, f"--out-arg {name}: no such folder {parent}")


def write(file: str, values: Array) -> None:
    """Write an array to a file: .npy, else its bytes.

    Raises
    ------
    RequestError
        If the file cannot be written.
    """
    import io

    raw = io.BytesIO()
    if file.endswith(".npy"):
        np.save(raw, values)
    else:
        raw.write(values.tobytes())
    write_at_once(file, raw.getvalue())
