"""The kit's small functions on shapes, as far as TIK programs call them."""

from collections.abc import Mapping, Sequence
from typing import Any


def axis_check(rank: int, axis: Any) -> Any:
    """Return an axis, or a list of them, counted from the front.

    Raises
    ------
    RuntimeError
        If an axis lies outside [-rank, rank), as the kit has it.
    """
    axes = axis if isinstance(axis, (list, tuple)) else [axis]
    for one in axes:
        if not -rank <= one < rank:
            message = f"axis_check: axis must be in [{-rank}, {rank}), got {one}"
            raise RuntimeError(message)
    counted = [one % rank for one in axes]
    return sorted(set(counted)) if isinstance(axis, (list, tuple)) else counted[0]


def compare_tensor_dict_key(
    one: Mapping[str, object], other: Mapping[str, object], key: str
) -> None:
    """Require two descriptions of tensors to agree in a key.

    Raises
    ------
    RuntimeError
        If the values differ, or one of the dictionaries does not have the key.
    """
    values = [description.get(key) for description in (one, other)]
    plain = [v.lower() if isinstance(v, str) else v for v in values]
    plain = [list(v) if isinstance(v, (list, tuple)) else v for v in plain]
    if None in plain or plain[0] != plain[1]:
        message = f"compare_tensor_dict_key: {key} must agree, got {values[0]} and {values[1]}"
        raise RuntimeError(message)


def scalar2tensor_one(shape: Sequence[int]) -> Sequence[int]:
    """Return a scalar's empty shape as (1,), every other as it is."""
    return shape or (1,)


def shape_to_list(shape: Sequence[int]) -> list[int]:
    """Return a shape as a list."""
    return list(shape)


NAMES = {
    f.__name__: f for f in (axis_check, compare_tensor_dict_key, scalar2tensor_one, shape_to_list)
}
"""The functions by name."""
