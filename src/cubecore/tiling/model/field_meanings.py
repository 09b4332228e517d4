"""The meaning of each field of TCubeTiling, as table 1 of its page gives it, in our words."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cubecore.citations import EDITIONS, cite_rows
from cubecore.tiling.model.tcubetiling import FIELDS, RESERVED_FIELDS, UNSTATED_FIELDS

_OTHERS = "Other values are undefined."
_EXTENT = "An extent of A, B and C as the user holds them, in elements"
_SHARE = "An extent of A, B and C on one core, in elements"
_BLOCK = "An extent of A, B and C in one matrix instruction, in elements and whole fractals"
_POSITIVE = "Greater than 0."
_IN_NEWER = "Greater than 0 (newer edition)."
_DOUBLE = "1: one buffer. 2: double buffer."


@dataclass(frozen=True)
class FieldMeaning:
    """The meaning of a field, and the rows of table 1 that give it (none: no edition has it)."""

    text: str
    rows: tuple[str, ...]

    @property
    def source(self) -> str:
        """The citation of the rows; where there are none, that neither edition has the field."""
        return cite_rows(self.rows) or "neither edition of TCubeTiling structure"


def _depth(side: str, base: str) -> str:
    newer = f"The number of {base} * baseK blocks of {side} that {side}1 (in L1) holds"
    older = f"calls them blocks held for {side}2 (L0{side})"
    return f"{newer}. {_POSITIVE} The older edition {older}; its table 2 counts them in L1, too."


def _step(side: str, axis: str, base: str) -> str:
    return f"The extent along {axis} of {side}1's buffer in L1, in {base}. {_POSITIVE}"


_ROW_OF = {
    **dict.fromkeys(("M", "N", "Ka", "Kb"), "M"),
    **dict.fromkeys(("singleCoreM", "singleCoreN", "singleCoreK"), "singleCoreM"),
    **dict.fromkeys(("baseM", "baseN", "baseK"), "baseM"),
    **dict.fromkeys(("depthA1", "depthB1"), "depthA1"),
    **dict.fromkeys(("stepM", "stepN", "stepKa", "stepKb"), "stepM"),
    **dict.fromkeys(("dbL0A", "dbL0B", "dbL0C"), "dbL0A"),
}
"""The first field of the row of table 1 that a field shares with others."""
_TEXTS = {
    "usedCoreNum": "The number of AI Cores that take part, 1 to the chip's number: "
    "(M / singleCoreM) * (N / singleCoreN).",
    "M": f"{_EXTENT}: the rows of A and of C. A multiple of 16 where A is NZ; above 65535 a "
    "transposed A in ND needs intrinsicsCheck (older edition: is not allowed).",
    "N": f"{_EXTENT}: the columns of B and of C. A multiple of 16 where B is NZ; above 65535 a B "
    "in ND that is not transposed needs intrinsicsCheck (older edition: is not allowed).",
    "Ka": f"{_EXTENT}: the columns of A. A multiple of C0_size where A is NZ; above 65535 an A in "
    "ND that is not transposed needs intrinsicsCheck (older edition: is not allowed).",
    "Kb": f"{_EXTENT}: the rows of B. A multiple of C0_size where B is NZ; above 65535 a "
    "transposed B in ND needs intrinsicsCheck (older edition: is not allowed).",
    "singleCoreM": f"{_SHARE}: along M, at most M. {_IN_NEWER} A multiple of 16 where A is NZ.",
    "singleCoreN": f"{_SHARE}: along N, at most N. {_IN_NEWER} A multiple of 16 where B is NZ.",
    "singleCoreK": f"{_SHARE}: along K, equal to K, which several cores do not split. "
    f"{_IN_NEWER} A multiple of C0_size * fractal_num where A or B is NZ.",
    "baseM": f"{_BLOCK}: along M. {_IN_NEWER}",
    "baseN": f"{_BLOCK}: along N. {_IN_NEWER}",
    "baseK": f"{_BLOCK}: along K. {_IN_NEWER} A multiple of 64 in MxMatmul.",
    "depthA1": _depth("A", "baseM"),
    "depthB1": _depth("B", "baseN"),
    "stepM": _step("A", "M", "baseM"),
    "stepN": _step("B", "N", "baseN"),
    "stepKa": _step("A", "Ka", "baseK"),
    "stepKb": _step("B", "Kb", "baseK"),
    "isBias": f"Whether bias is added. 0, the default: no. 1: yes. {_OTHERS}",
    "transLength": "max(A1Length, B1Length, C1Length, BiasLength): the most UB that A, B, C or "
    "bias needs for a while.",
    "iterateOrder": "The order of the [baseM, baseN] blocks of C that successive Iterate calls "
    f"compute. 0: along M first, then N. 1: along N first, then M. {_OTHERS}",
    "dbL0A": f"Whether MTE1 double-buffers A in L0A. {_DOUBLE} {_OTHERS}",
    "dbL0B": f"Whether MTE1 double-buffers B in L0B. {_DOUBLE} {_OTHERS}",
    "dbL0C": f"Whether the Cube double-buffers C in L0C. {_DOUBLE} {_OTHERS}",
    **dict.fromkeys(RESERVED_FIELDS, "Reserved: leave it alone."),
    "mxTypePara": "The factors of MxMatmul by which a load of a scale to L1 exceeds that of its "
    "operand, 1 to 127 each: bits 0 to 6 scaleFactorKa, 8 to 14 scaleFactorKb, 16 to 22 "
    "scaleFactorM, 24 to 30 scaleFactorN. It acts in the MDL template only.",
    **dict.fromkeys(UNSTATED_FIELDS, "An axis of A, B or C in a layout of batches (IterateBatch)."),
    **dict.fromkeys(("depthAL1CacheUB", "depthBL1CacheUB"), "Not documented: leave it at 0."),
    "BatchNum": "The matrices of a batch that one call computes (IterateBatch).",
}


def _rows(name: str) -> tuple[str, ...]:
    if name in UNSTATED_FIELDS:
        return ()
    pages = ("000",) if name == "mxTypePara" else EDITIONS.values()
    return tuple(f"{page}/t1/{_ROW_OF.get(name, name)}" for page in pages)


FIELD_MEANINGS: Mapping[str, FieldMeaning] = MappingProxyType(
    {name: FieldMeaning(_TEXTS[name], _rows(name)) for name in FIELDS}
)
"""The meaning of every field, by its name."""
