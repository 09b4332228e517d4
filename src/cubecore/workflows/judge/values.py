"""Values that processes of a judgement hand to each other: JSON, with arrays in files beside it."""

import hashlib
import io
import math
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from cubecore.aliases import Json
from cubecore.arrays import Array
from cubecore.dtypes import element_type

_TENSOR, _SPARSE, _SIZED = "tensor", "sparse", "sized"


class ArrayFolder:
    """A folder that values are stored in, each array in a file of its own.

    A sealed one tells the digest of each file: others may write to it before it is read.
    """

    def __init__(self, folder: Path, *, sealed: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._numbers, self._sealed = folder, count(), sealed

    def stored(self, value: Any) -> Any:
        """Return a value as JSON; arrays and tensors of torch are written to the folder.

        Raises
        ------
        TypeError
            If a part of it is no array, number, text or container of those.
        """
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [self.stored(each) for each in value]}
        if isinstance(value, dict):
            return {"dict": [[self.stored(k), self.stored(v)] for k, v in value.items()]}
        if isinstance(value, np.generic):
            return self.stored(np.asarray(value))
        if isinstance(value, np.ndarray):
            return self._written(value, "array")
        if is_sparse(value):
            parts = value._indices(), value._values()  # noqa: SLF001 - of any, summed up or not
            return {
                _SPARSE: [self.stored(each) for each in parts],
                "shape": list(value.shape),
                "summed": value.is_coalesced(),
            }
        if is_tensor(value) and value.is_meta:
            name = str(value.dtype).removeprefix("torch.")
            return {_SIZED: list(value.shape), "type": name}
        if is_tensor(value):
            return self._written(array_of(value), _TENSOR)
        raise TypeError(f"a value of {type(value).__name__}")

    def _written(self, array: Array, kind: str) -> Json:
        raw = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        name = f"{next(self._numbers)}.npy"
        kept = raw if raw.dtype.isbuiltin == 1 else raw.view(f"u{raw.dtype.itemsize}")
        while (self._folder / name).exists():
            name = f"{next(self._numbers)}.npy"
        description = {kind: name, "dtype": str(raw.dtype), "shape": list(raw.shape)}
        if not self._sealed:
            np.save(self._folder / name, kept)
            return description
        file = io.BytesIO()
        np.save(file, kept)
        (self._folder / name).write_bytes(file.getbuffer())
        return description | {"sha256": hashlib.sha256(file.getbuffer()).hexdigest()}


def loaded(folder: Path, record: Any) -> Any:
    """Return what `ArrayFolder.stored` has stored; tensors as those of torch.

    Raises
    ------
    ValueError
        If a file is not the one that was sealed.
    """
    if not isinstance(record, dict):
        return record
    if "float" in record:
        return float(record["float"])
    for kind, make in (("tuple", tuple), ("list", list)):
        if kind in record:
            return make(loaded(folder, each) for each in record[kind])
    if "dict" in record:
        return {loaded(folder, k): loaded(folder, v) for k, v in record["dict"]}
    if _SPARSE in record:
        import torch

        parts = (loaded(folder, each) for each in record[_SPARSE])
        shape, summed = record["shape"], record["summed"]
        return torch.sparse_coo_tensor(
            *parts, shape, is_coalesced=summed or None, check_invariants=False
        )
    if _SIZED in record:
        return sized_tensor(tuple(record[_SIZED]), record["type"])
    name = record.get(_TENSOR) or record["array"]
    file: Any = folder / Path(name).name  # of this folder alone
    if "sha256" in record:
        raw = file.read_bytes()
        if hashlib.sha256(raw).hexdigest() != record["sha256"]:
            raise ValueError(name)
        file = io.BytesIO(raw)
    array = np.load(file, allow_pickle=False)
    if str(array.dtype) != record["dtype"]:
        array = array.view(element_type(record["dtype"]).numpy)
    array = array.reshape(record["shape"])
    return tensor_of(array) if _TENSOR in record else array


def arrays_in(record: Any) -> list[Json]:
    """Return the records of the arrays of a stored value, in their order."""
    if not isinstance(record, dict) or "float" in record:
        return []
    if "dtype" in record:
        return [record]
    kinds = ("tuple", "list", _SPARSE)
    parts = next((record[kind] for kind in kinds if kind in record), None) or [
        v for _, v in record.get("dict", ())
    ]
    return [each for part in parts for each in arrays_in(part)]


def is_tensor(value: object) -> bool:
    """True of a tensor of torch, which need not be imported."""
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach")


def is_sparse(value: object) -> bool:
    """True of a sparse tensor of torch, in coordinates."""
    return is_tensor(value) and str(getattr(value, "layout", "")) == "torch.sparse_coo"


def array_of(tensor: Any) -> Array:
    """Return a tensor of torch as an array; a type that NumPy does not know has the same bits."""
    plain, name = tensor.detach().cpu().contiguous(), str(tensor.dtype).removeprefix("torch.")
    if name != "bfloat16":
        array: Array = plain.numpy()
        return array
    import torch

    raw: Array = plain.view(torch.int16).numpy()
    return raw.view(element_type(name).numpy)


def sized_tensor(shape: tuple[int, ...], name: str) -> Any:
    """Return a tensor of torch that has a shape and a type alone."""
    import torch

    return torch.empty(shape, dtype=getattr(torch, name), device="meta")


def sized_array(tensor: Any) -> Array:
    """Return an array of such a tensor's shape and type, whose elements are one 0 in memory."""
    name = str(tensor.dtype).removeprefix("torch.")
    kind = element_type(name).numpy if name == "bfloat16" else np.dtype(name)
    return np.broadcast_to(np.zeros((), kind), tuple(tensor.shape))


def tensor_of(array: Array) -> Any:
    """Return an array as a tensor of torch."""
    import torch

    if array.dtype.name != "bfloat16":
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
