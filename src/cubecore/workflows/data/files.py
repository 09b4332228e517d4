"""Arrays read from .npy and .safetensors files."""

import math
import warnings
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.errors import refuse, unreadable

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
_MAGIC = b"\x93NUMPY"


def load_array(path: str, kind: ElementType, shape: tuple[int, ...], subject: str) -> Array:
    """Return the array in a .npy or .safetensors file, as `kind` and of `shape`.

    A .npy whose type NumPy cannot name (V1, V2, uint8, uint16) is reinterpreted, one of the other
    byte order converted. A .safetensors file holds one tensor, or is given as
    ``file.safetensors:tensor``. Pickled objects are never loaded, and nothing is read before its
    shape and type are known to be right.

    Raises
    ------
    RequestError
        If the file cannot be read, or does not hold the array.
    """
    where = f"{subject} {path}"
    file, tensor = _split(path)
    if tensor:
        values = _read_safetensors(file, tensor, where)
    elif path.endswith(".safetensors"):
        values = _read_safetensors(path, None, where)
    else:
        return _read_npy(path, kind, shape, where)
    _require(values.dtype, values.shape, kind, shape, where)
    return _as_kind(values, kind)


def announced(path: str, subject: str) -> tuple[str, tuple[int, ...]]:
    """Return the name of the type and the shape that a .npy file says it has.

    Raises
    ------
    RequestError
        If the file cannot be read, or is no .npy file.
    """
    where = f"{subject} {path}"
    try:
        with Path(path).open("rb") as file:
            dtype, shape, _ = _header(file, where)
    except (OSError, ValueError) as error:
        raise unreadable(where, error) from None
    return dtype.newbyteorder("=").name, shape


def array_file(path: str) -> str:
    """Return the file of a path that may name a tensor in it."""
    return _split(path)[0]


def _split(path: str) -> tuple[str, str]:
    """Return (the file, the tensor in it that a path names or nothing)."""
    name, sign, tensor = path.partition(".safetensors:")
    return (f"{name}.safetensors" if sign else path, tensor)


def _require(
    dtype: "np.dtype[Any]",
    shape_in_file: tuple[int, ...],
    kind: ElementType,
    shape: tuple[int, ...],
    where: str,
) -> None:
    native = dtype.newbyteorder("=")
    opaque = dtype.kind == "V" and dtype.fields is None and dtype.subdtype is None
    if dtype.hasobject:
        raise refuse(where, "hold numbers", "pickled objects, which are never loaded")
    same_width = dtype.itemsize == kind.numpy.itemsize
    if native != kind.numpy and not (same_width and (opaque or native in (np.uint8, np.uint16))):
        raise refuse(where, f"hold {kind}", dtype.name)
    if shape_in_file != shape:
        raise refuse(where, f"have shape {list(shape)}", list(shape_in_file))


def _as_kind(values: Array, kind: ElementType) -> Array:
    native = np.asarray(values, values.dtype.newbyteorder("="), order="C")
    return native if native.dtype == kind.numpy else native.view(kind.numpy)


def _read_npy(path: str, kind: ElementType, shape: tuple[int, ...], where: str) -> Array:
    try:
        with Path(path).open("rb") as file:
            dtype, shape_in_file, by_columns = _header(file, where)
            _require(dtype, shape_in_file, kind, shape, where)
            values = np.empty(math.prod(shape) * dtype.itemsize, np.uint8)
            there = file.readinto(values.data)
    except (OSError, ValueError) as error:
        raise unreadable(where, error) from None
    if there < values.size:
        raise refuse(where, "be a whole .npy file", f"{there} of {values.size} B of the array")
    array = values.view(dtype).reshape(shape, order="F" if by_columns else "C")
    return _as_kind(array, kind)


def _header(file: BinaryIO, where: str) -> tuple["np.dtype[Any]", tuple[int, ...], bool]:
    """Return the type and shape that a .npy file announces, and whether columns come first."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise refuse(where, "be a .npy or .safetensors file", "another format")
    version, need = file.read(2), "be a whole .npy file"
    if version not in (b"\1\0", b"\2\0", b"\3\0"):
        raise refuse(where, need, f"version {'.'.join(map(str, version)) or 'none'}")
    # Version 3 differs from 2 in the encoding of field names only.
    read = (
        np.lib.format.read_array_header_1_0
        if version == b"\1\0"
        else np.lib.format.read_array_header_2_0
    )
    try:
        with warnings.catch_warnings():  # of Python's parser, on a text that is no Python
            warnings.simplefilter("ignore")
            shape, by_columns, dtype = read(file)
    except OSError:
        raise
    except Exception:  # noqa: BLE001 - a damaged text makes Python's parser raise nearly anything
        raise refuse(where, need, "a damaged header") from None
    return dtype, shape, by_columns


def _read_safetensors(path: str, tensor: str | None, where: str) -> Array:
    from safetensors import SafetensorError, deserialize

    from cubecore.dtypes import element_type

    try:
        entries = dict(deserialize(Path(path).read_bytes()))  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise unreadable(where, error) from None
    except SafetensorError:
        raise refuse(where, "be a whole .safetensors file", "a damaged one") from None
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
    values = np.frombuffer(bytes(entry["data"]), element_type(kind).numpy)
    return values.reshape(entry["shape"])
