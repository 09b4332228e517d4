"""Operators of vector cores: named, and timed."""

import re
from collections.abc import Mapping
from math import prod

from cubecore.answers.operators import TimedOperator
from cubecore.chips import chip as named_chip
from cubecore.chips import default_chip
from cubecore.errors import refuse
from cubecore.kernels.operators.attention.options import AttentionOptions
from cubecore.kernels.operators.named import NamedOperator, operator_of
from cubecore.kernels.runnable import require_timed

_SHAPE = re.compile(r"\d+(x\d+)*")


def operator_problem(
    op: str, shape: str, dtype: str = "float16", options: AttentionOptions | None = None
) -> NamedOperator:
    """Return the operator that is asked for.

    Parameters
    ----------
    op : str
        A function of elements or rows, attention, rotary, moe_permute or moe_unpermute.
    shape : str
        Extents with x between them. Of a function all but the last are rows.
    dtype : str
        The type of the inputs.
    options : AttentionOptions or None
        A mask, shared keys and cuts of attention.

    Raises
    ------
    RequestError
        If the name, the shape or the type is not one that operators take.
    """
    extents = [int(text) for text in shape.split("x")] if _SHAPE.fullmatch(shape) else []
    if not extents or min(extents) < 1 or prod(extents) >= 2**63 or max(extents) >= 2**31:
        need = "be positive integers as in 4096x2048, below 2^31 each"
        raise refuse("--shape", need, repr(shape))
    return operator_of(op, extents, dtype, options)


def time_operator(
    op: str,
    shape: str,
    *,
    a: str = "float16",
    options: AttentionOptions | None = None,
    chip: str | None = None,
    settings: Mapping[str, str] | None = None,
    record: int = 0,
    full: bool = False,
) -> TimedOperator:
    """Return the event-driven timing of an operator on all vector cores of a chip.

    Parameters
    ----------
    op : str
        exp, gelu, softmax, rms_norm, ...
    shape : str
        Extents such as 4096x2048; functions of rows work along the last.
    a : str
        float16, bfloat16 or float32.
    options : AttentionOptions or None
        A mask, shared keys and cuts of attention.
    chip : str or None
        Full SoC name.
    settings : mapping or None
        Fields of the chip to replace, as texts: a what-if chip.
    record : int
        Instructions of each group of cores to keep as segments.
    full : bool
        Walk every instruction instead of skipping what recurs.

    Raises
    ------
    RequestError
        If there is no such operator, a row does not fit in UB, or no model times the chip.

    Examples
    --------
    >>> from cubecore.workflows.operators.operators import time_operator
    >>> time_operator("softmax", "4096x2048").timeline.limited_by
    'V'
    """
    problem = operator_problem(op, shape, a, options)
    target = named_chip(chip or default_chip()).what_if(settings or {})
    require_timed(target)
    return TimedOperator(problem, target, problem.timed(target, record=record, full=full))
