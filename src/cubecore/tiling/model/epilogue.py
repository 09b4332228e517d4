"""The epilogue of a matmul: fixpipe's conversion of the result, well formed on its own."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

from cubecore.errors import RequestError, Violation, did_you_mean, shown

OFFSET_LIMIT = 256
"""Offsets of fixpipe have nine bits (asc-devkit, on-the-fly quantisation)."""
SMALLEST, LARGEST = 2.0**-126, (2 - 2.0**-10) * 2.0**127
"""Magnitudes that a scale can have: float32 with 10 bits of mantissa, ordinary numbers only."""


@dataclass(frozen=True, kw_only=True)
class Epilogue:
    """The conversion of a result in fixpipe: relu, then a conversion with a scale.

    `quant` is a mode of fixpipe that takes scales (DEQF16, REQ8, QF322B8_PRE with one; VDEQF16,
    VREQ8, VQF322B8_PRE with one for each column). `scale` is the number, or the n numbers;
    `offset`, -256 to 255, is added to an 8-bit result.
    """

    relu: bool = False
    quant: str | None = None
    scale: float | tuple[float, ...] | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        violations = []
        if not isinstance(self.relu, bool):
            violations.append(wrong("epilogue.relu", "be true or false", self.relu))
        if not (self.quant is None or isinstance(self.quant, str)):
            violations.append(wrong("epilogue.quant", "be a name or null", self.quant))
        violations += self._scale_violations()
        if not is_integer(self.offset):
            violations.append(wrong("epilogue.offset", "be an integer", self.offset))
        elif not -OFFSET_LIMIT <= self.offset < OFFSET_LIMIT:
            need = f"be in [-{OFFSET_LIMIT}, {OFFSET_LIMIT - 1}]"
            violations.append(Violation("epilogue.offset", need, shown(self.offset, str)))
        raise_if(violations)

    def _scale_violations(self) -> list[Violation]:
        """Freeze a list of scales, and say what is wrong with any."""
        if isinstance(self.scale, (list, tuple)):
            object.__setattr__(self, "scale", tuple(self.scale))
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        for index, scale in enumerate(scales):
            name = f"epilogue.scale[{index}]" if isinstance(self.scale, tuple) else "epilogue.scale"
            if scale is None and not isinstance(self.scale, tuple):
                continue
            if scale is None or not is_real(scale):
                return [wrong(name, "be a number, n numbers or null", scale)]
            if not math.isfinite(scale) or (scale and not SMALLEST <= abs(scale) <= LARGEST):
                need = "be 0 or a number that float32 holds without becoming subnormal"
                return [Violation(name, need, str(scale))]
        return []


def epilogue_of(value: Any) -> Epilogue:
    """Return the epilogue of a JSON object with its keys."""
    if isinstance(value, Epilogue):
        return value
    if not isinstance(value, Mapping):
        raise RequestError([wrong("epilogue", "be a JSON object", value)])
    names = [f.name for f in fields(Epilogue)]
    unknown = [
        Violation("epilogue", "have only known keys", repr(key), did_you_mean(str(key), names))
        for key in value
        if key not in names
    ]
    raise_if(unknown)
    return Epilogue(**{k: v for k, v in value.items() if v is not None})


def is_integer(value: Any) -> bool:
    """True if a value is an integer, and not a truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """True if a value is a number, and not a truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def wrong(subject: str, requirement: str, value: Any) -> Violation:
    """Return the violation of a value of the wrong kind."""
    return Violation(subject, requirement, shown(value))


def raise_if(violations: list[Violation]) -> None:
    """Raise a `RequestError` of the violations, if there are any."""
    if violations:
        raise RequestError(violations)
