"""Files in and out: arrays as .npy and .safetensors, and outputs that are whole or not there."""

import math
import os
import stat
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.errors import RequestError, Violation, refuse, unreadable, unwritable

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
TEMPORARY = ".cubecore"
"""The prefix of temporary files' names; they lie beside the file that they become."""
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


def _target(path: str, subject: str) -> Path:
    """Return the file that a name stands for; refuse what is no file and cannot become one."""
    where = f"{subject} {path}"
    try:
        target = Path(path).resolve()
        if path == "-":
            raise unwritable(where, "an output is a file; ./- names one called -")
        if path.endswith(os.sep) or target.is_dir():
            raise unwritable(where, "is a directory")
        if target.exists() and not (target.is_file() or target.is_char_device()):
            raise unwritable(where, "neither a file nor a terminal")
    except (OSError, ValueError, RuntimeError) as error:
        raise unwritable(where, error) from None
    return target


def require_apart(outputs: Sequence[tuple[str, str]], inputs: Sequence[tuple[str, str]]) -> None:
    """Refuse an output that is the same file as an input or as an output before it.

    Both are pairs of a subject and a path; ``-`` as an input is standard input. Links are followed
    and two names of one file are one. A terminal or /dev/null keeps nothing and may be both.

    Raises
    ------
    RequestError
        One violation for each such output.
    """
    taken = [(subject, path, _identity(path, read=True)) for subject, path in inputs]
    violations = []
    for subject, path in outputs:
        identity = _identity(path)
        other = next((t for t in taken if not identity.isdisjoint(t[2])), None)
        if other is None:
            taken.append((subject, path, identity))
            continue
        same = "" if path == other[1] else f", the same file as {other[1]}"
        violations.append(Violation(subject, f"name another file than {other[0]}", f"{path}{same}"))
    if violations:
        raise RequestError(violations)


def _identity(path: str, *, read: bool = False) -> frozenset[object]:
    """Return what two names of one file share: the resolved path, and the number on the device."""
    try:
        if read and path == "-":
            state = os.fstat(sys.stdin.fileno())
            return frozenset({(state.st_dev, state.st_ino)})
        resolved = Path(path).resolve()
    except (OSError, ValueError, RuntimeError):  # refused later, by who opens it
        return frozenset()
    try:
        state = resolved.stat()
    except OSError:
        return frozenset({resolved})
    if stat.S_ISCHR(state.st_mode):
        return frozenset()
    return frozenset({resolved, (state.st_dev, state.st_ino)})


def _temporary(folder: Path) -> tuple[int, str]:
    """Return (the descriptor, the name) of a new file in a folder."""
    import tempfile

    return tempfile.mkstemp(dir=folder, prefix=TEMPORARY)


def require_writable(path: str, subject: str) -> None:
    """Refuse an output path that cannot be written, before any work is done."""
    target = _target(path, subject)
    try:
        if target.exists():
            with target.open("ab"):
                return
        handle, probe = _temporary(target.parent)
        os.close(handle)
        Path(probe).unlink()
        if len(os.fsencode(target.name)) > _longest_name(target.parent):
            raise unwritable(f"{subject} {path}", "file name too long")
    except (OSError, ValueError) as error:
        raise unwritable(f"{subject} {path}", error) from None


def _longest_name(folder: Path) -> int:
    """Return how many bytes a name in a folder may have; Windows does not say, and takes 255."""
    return os.pathconf(folder, "PC_NAME_MAX") if hasattr(os, "pathconf") else 255


def write_whole(path: str, data: bytes | str, subject: str) -> None:
    """Write a file in one step: it holds all of `data` or what it held before.

    A link's target is written, not the link; a terminal or /dev/null is written to as it is. Of a
    text, what has no encoding is written as an escape.
    """
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "backslashreplace")
    target = _target(path, subject)
    part = None
    try:
        if target.is_char_device():
            target.write_bytes(raw)
            return
        handle, part = _temporary(target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
        put_in_place(Path(part), target)
        part = None
    except OSError as error:
        raise unwritable(f"{subject} {path}", error) from None
    finally:  # behind a Ctrl-C, too
        if part is not None:
            Path(part).unlink(missing_ok=True)


def put_in_place(part: Path, target: Path) -> None:
    """Give a finished temporary file its name, with the rights that the target has or would have.

    Raises
    ------
    OSError
        If the file cannot be renamed.
    """
    umask = os.umask(0)
    os.umask(umask)
    part.chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~umask)
    part.replace(target)
