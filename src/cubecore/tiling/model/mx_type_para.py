"""mxTypePara: factors by which a load to L1 brings more of the scales than of A and B.

Four factors of 7 bits, each in a byte of its own: along K for A and for B, along M, along N. The
functions work on one value and on arrays of them.
"""

from dataclasses import astuple, dataclass, fields

from cubecore.aliases import Column
from cubecore.errors import RequestError, Violation

FACTOR_LIMIT = 127
"""Largest factor (TCubeTiling structure, newer edition, table 1)."""
SHIFTS = {"scaleFactorKa": 0, "scaleFactorKb": 8, "scaleFactorM": 16, "scaleFactorN": 24}
"""The lowest bit of each factor in mxTypePara."""
SPARE_BITS = 0x80808080
"""Bits 7, 15, 23 and 31, which belong to no factor."""


@dataclass(frozen=True, slots=True)
class MxTypePara:
    """The factors packed in mxTypePara: the data of one load of a scale, over a load of A or B.

    scaleFactorKa and scaleFactorM are scaleA's along K and M, scaleFactorKb and scaleFactorN
    scaleB's along K and N; 1 loads a scale together with its elements.

    Raises
    ------
    RequestError
        One violation for each factor outside [1, 127].

    Examples
    --------
    >>> cubecore.MxTypePara.unpack(0x01010101).scaleFactorKa
    1
    """

    scaleFactorKa: int = 1
    scaleFactorKb: int = 1
    scaleFactorM: int = 1
    scaleFactorN: int = 1

    def __post_init__(self) -> None:
        wrong = [
            Violation(f.name, f"be in [1, {FACTOR_LIMIT}]", str(getattr(self, f.name)))
            for f in fields(self)
            if not 1 <= getattr(self, f.name) <= FACTOR_LIMIT
        ]
        if wrong:
            raise RequestError(wrong)

    @classmethod
    def unpack(cls, field: int) -> "MxTypePara":
        """Return the factors in a field's value.

        Parameters
        ----------
        field : int
            The value of mxTypePara.

        Returns
        -------
        MxTypePara
            The four factors.

        Raises
        ------
        RequestError
            If a factor is 0, or a bit outside the factors is set.
        """
        if spare := spare_bits(field):
            raise RequestError(
                [Violation("mxTypePara", "leave bits 7, 15, 23 and 31 clear", f"0x{spare:08x}")]
            )
        return cls(*(scale_factor(field, name) for name in SHIFTS))

    def pack(self) -> int:
        """Return the field's value.

        Returns
        -------
        int
            The value of mxTypePara, seven bits for each factor.
        """
        return sum(
            factor << shift for factor, shift in zip(astuple(self), SHIFTS.values(), strict=True)
        )


PLAIN = MxTypePara().pack()
"""The field of a tiling that loads every scale together with what it scales."""


def scale_factor(field: Column, name: str) -> Column:
    """Return the factor `name` that mxTypePara holds: 0 to 127."""
    return field >> SHIFTS[name] & FACTOR_LIMIT


def spare_bits(field: Column) -> Column:
    """Return the bits of mxTypePara that belong to no factor."""
    return field & SPARE_BITS


def with_factor(field: int, name: str, factor: int) -> int:
    """Return mxTypePara with one factor replaced and the rest as it is."""
    return field & ~(FACTOR_LIMIT << SHIFTS[name]) | factor << SHIFTS[name]
