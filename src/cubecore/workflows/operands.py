"""Operands of a product: seeded random values, or the user's files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cubecore.dtypes import ElementType
from cubecore.errors import refuse
from cubecore.tiling.problem import Problem

Array = NDArray[Any]
_SAFETENSORS_NAMES = {
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "I8": "int8",
    "U8": "uint8",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}


@dataclass(frozen=True, eq=False, slots=True)
class Operands:
    """A [m, k] or [k, m], B [k, n] or [n, k] as stored, and the bias row [n] if there is one."""

    a: Array
    b: Array
    bias: Array | None


def make_operands(
    problem: Problem,
    a_file: str | None = None,
    b_file: str | None = None,
    bias_file: str | None = None,
) -> Operands:
    """Return the operands of `problem` from files, and random ones for the rest.

    Random floats are normal, random integers cover their type (int32 bias: 16 bits of it); the
    problem's seed fixes them.

    Raises:
        RequestError: a file that cannot be read, or of another shape or type.
    """
    p = problem
    rng = np.random.default_rng(p.seed)
    a_shape = (p.k, p.m) if p.trans_a else (p.m, p.k)
    b_shape = (p.n, p.k) if p.trans_b else (p.k, p.n)
    a = _operand("a", p.a_type, a_shape, a_file, rng)
    b = _operand("b", p.b_type, b_shape, b_file, rng)
    if p.bias_type is None:
        if bias_file is not None:
            raise refuse("--bias-file", "come with a bias type", bias_file, "give --bias TYPE")
        return Operands(a, b, None)
    return Operands(a, b, _operand("bias", p.bias_type, (p.n,), bias_file, rng))


def _operand(
    name: str, kind: ElementType, shape: tuple[int, ...], file: str | None, rng: np.random.Generator
) -> Array:
    if file is not None:
        return load_array(file, kind, shape, f"--{name}-file")
    if kind.kind == "int":
        info = np.iinfo(np.int16 if kind.bits > 16 else kind.numpy)
        return rng.integers(info.min, int(info.max) + 1, shape).astype(kind.numpy)
    return rng.standard_normal(shape, np.float32).astype(kind.numpy)


def load_array(path: str, kind: ElementType, shape: tuple[int, ...], subject: str) -> Array:
    """Return the array in a .npy or .safetensors file, as `kind` and of `shape`.

    A .npy whose type NumPy cannot name (V1, V2, uint8, uint16) is reinterpreted. A .safetensors
    file holds one tensor, or is given as ``file.safetensors:tensor``. Pickled objects are never
    loaded.

    Raises:
        RequestError: one sentence on the file, what it must be and what it is.
    """
    where = f"{subject} {path}"
    name, _, tensor = path.partition(".safetensors:")
    if tensor:
        values = _read_safetensors(f"{name}.safetensors", tensor, where)
    elif path.endswith(".safetensors"):
        values = _read_safetensors(path, None, where)
    else:
        values = _read_npy(path, where)
    values = _as_type(values, kind, where)
    if values.shape != shape:
        raise refuse(where, f"have shape {list(shape)}", list(values.shape))
    return values


def _as_type(values: Array, kind: ElementType, where: str) -> Array:
    if values.dtype == kind.numpy:
        return values
    opaque = values.dtype.kind == "V" or values.dtype in (np.uint8, np.uint16)
    if opaque and values.dtype.itemsize == kind.numpy.itemsize:
        return np.ascontiguousarray(values).view(kind.numpy)
    raise refuse(where, f"hold {kind}", values.dtype.name)


def _read_npy(path: str, where: str) -> Array:
    try:
        with Path(path).open("rb") as file:
            _refuse_objects(file, where)
            file.seek(0)
            values = np.load(file, allow_pickle=False)
    except OSError as error:
        raise refuse(where, "be a file that can be read", error.strerror or error) from None
    except (ValueError, EOFError) as error:
        raise refuse(where, "be a whole .npy file", str(error).splitlines()[0]) from None
    if not isinstance(values, np.ndarray):
        raise refuse(where, "be a .npy file", "an archive of several arrays")
    return np.ascontiguousarray(values)


def _refuse_objects(file: BinaryIO, where: str) -> None:
    if file.read(6) != b"\x93NUMPY":
        raise refuse(where, "be a .npy or .safetensors file", "another format")
    file.seek(0)
    version = np.lib.format.read_magic(file)
    reader = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if reader is not None and reader(file)[2].hasobject:
        raise refuse(where, "hold numbers", "pickled objects, which are never loaded")


def _read_safetensors(path: str, tensor: str | None, where: str) -> Array:
    from safetensors import SafetensorError, deserialize

    try:
        entries = dict(deserialize(Path(path).read_bytes()))  # type: ignore[no-untyped-call]
    except OSError as error:
        raise refuse(where, "be a file that can be read", error.strerror or error) from None
    except SafetensorError as error:
        raise refuse(where, "be a whole .safetensors file", error) from None
    if tensor is None and len(entries) != 1:
        raise refuse(
            where, "hold one tensor", f"{len(entries)}", "name one as FILE.safetensors:TENSOR"
        )
    entry = entries.get(tensor) if tensor is not None else next(iter(entries.values()))
    if entry is None:
        raise refuse(where, f"hold one of {', '.join(sorted(entries))}", tensor)
    kind = _SAFETENSORS_NAMES.get(entry["dtype"])
    if kind is None:
        raise refuse(where, "hold a type that the Cube multiplies", entry["dtype"])
    from cubecore.dtypes import element_type

    values = np.frombuffer(bytes(entry["data"]), element_type(kind).numpy)
    return values.reshape(entry["shape"])


def require_writable(path: str, subject: str) -> None:
    """Refuse an output path that cannot be written, before any work is done."""
    target = Path(path)
    parent = target.parent if str(target.parent) else Path()
    if target.is_dir():
        raise refuse(f"{subject} {path}", "be a file that can be written", "a directory")
    try:
        probe = parent / f".{target.name}.cubecore-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        reason = error.strerror or str(error)
        raise refuse(f"{subject} {path}", "be a file that can be written", reason) from None


def write_whole(path: str, data: bytes, subject: str) -> None:
    """Write a file in one step: it holds all of `data` or what it held before."""
    target = Path(path)
    part = target.parent / f".{target.name}.cubecore-part"
    try:
        part.write_bytes(data)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise refuse(f"{subject} {path}", "be a file that can be written", reason) from None
