"""The keys of a problem as keyword arguments: to type checkers, and in runtime signatures."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypedDict, TypeVar

from cubecore.tiling.model.buffer_budget import BufferBudget
from cubecore.tiling.model.epilogue import Epilogue
from cubecore.tiling.model.field_limits import FieldLimits
from cubecore.tiling.model.problem import Problem

P = ParamSpec("P")
R = TypeVar("R")


class ProblemKeys(TypedDict, total=False):
    """The fields of `Problem`, each as a caller may give it; None means the default."""

    chip: str | None
    launch: str | None
    cores: int | None
    m: int | None
    n: int | None
    k: int | None
    kb: int | None
    a: str | None
    b: str | None
    c: str | None
    bias: str | None
    scale_a: str | None
    scale_b: str | None
    trans_a: bool | None
    trans_b: bool | None
    format_a: str | None
    format_b: str | None
    format_c: str | None
    pos_a: str | None
    pos_b: str | None
    pos_c: str | None
    batch: int | None
    split_k: bool | None
    template: str | None
    unit_flag: bool | None
    hf32: bool | None
    intrinsics_check: bool | None
    epilogue: Epilogue | Mapping[str, Any] | None
    fix: FieldLimits | Mapping[str, Any] | None
    budget: BufferBudget | Mapping[str, Any] | None
    layout: str | None
    heads: int | None
    groups: int | None
    batch_num: int | None
    seed: int | None


def takes_problem(function: Callable[P, R]) -> Callable[P, R]:
    """Show the keys of a problem in the signature of a function, in place of its ``**keys``.

    Their defaults are those of `Problem`; None where it has none or makes one.
    """
    original = signature(function)
    shown = [p for p in original.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    shown += [
        Parameter(
            f.name,
            Parameter.KEYWORD_ONLY,
            default=f.default if isinstance(f.default, str | int) and f.default != "" else None,
            annotation=ProblemKeys.__annotations__[f.name],
        )
        for f in fields(Problem)
    ]
    function.__signature__ = original.replace(parameters=shown)  # type: ignore[attr-defined]
    return function
