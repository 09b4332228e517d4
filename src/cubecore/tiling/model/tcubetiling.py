"""TCubeTiling: the 50 int32 fields that a Matmul kernel receives, verbatim and in order."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

from cubecore.aliases import Columns, JsonMapping
from cubecore.errors import MISSING, RequestError, Violation, did_you_mean, refuse, shown
from cubecore.units import INT32_MAX, INT32_MIN, first_few


@dataclass(frozen=True, slots=True)
class TCubeTiling:
    """One tiling: the 50 fields of the vendor's structure, as 32-bit integers.

    Sizes are elements, depths and steps are base blocks (table 1 of its page). A value outside
    int32 or not an integer is refused; `cubecore.check` judges the tiling.

    Raises
    ------
    RequestError
        One violation for each field that int32 cannot hold.
    """

    usedCoreNum: int
    M: int
    N: int
    Ka: int
    Kb: int
    singleCoreM: int
    singleCoreN: int
    singleCoreK: int
    baseM: int
    baseN: int
    baseK: int
    depthA1: int
    depthB1: int
    stepM: int
    stepN: int
    isBias: int
    transLength: int
    iterateOrder: int
    shareMode: int
    shareL1Size: int
    shareL0CSize: int
    shareUbSize: int
    batchM: int
    batchN: int
    singleBatchM: int
    singleBatchN: int
    stepKa: int
    stepKb: int
    depthAL1CacheUB: int
    depthBL1CacheUB: int
    dbL0A: int
    dbL0B: int
    dbL0C: int
    ALayoutInfoB: int
    ALayoutInfoS: int
    ALayoutInfoN: int
    ALayoutInfoG: int
    ALayoutInfoD: int
    BLayoutInfoB: int
    BLayoutInfoS: int
    BLayoutInfoN: int
    BLayoutInfoG: int
    BLayoutInfoD: int
    CLayoutInfoB: int
    CLayoutInfoS1: int
    CLayoutInfoN: int
    CLayoutInfoG: int
    CLayoutInfoS2: int
    BatchNum: int
    mxTypePara: int

    def __post_init__(self) -> None:
        values = [getattr(self, name) for name in FIELDS]
        if (
            all(type(x) is int for x in values)
            and INT32_MIN <= min(values) <= max(values) <= INT32_MAX
        ):
            return
        violations = [v for name in FIELDS for v in _value_violations(name, getattr(self, name))]
        if violations:
            raise RequestError(violations)
        for name in FIELDS:
            object.__setattr__(self, name, int(getattr(self, name)))

    @classmethod
    def from_json(cls, mapping: JsonMapping) -> "TCubeTiling":
        """Return the tiling of a JSON object; fields of `DEFAULTS` may be absent.

        Parameters
        ----------
        mapping : mapping
            An integer for each field that is given.

        Returns
        -------
        TCubeTiling
            The tiling.

        Raises
        ------
        RequestError
            One violation for each field without a default that is missing, and for each that is
            misspelt (with the nearest name), not an integer or outside int32.
        """
        if not isinstance(mapping, Mapping):
            raise refuse(
                "tiling", "be a JSON object with the fields of TCubeTiling", shown(mapping)
            )
        violations = list(_name_violations(mapping))
        for name in FIELDS:
            if name in mapping:
                violations += _value_violations(name, mapping[name])
        if violations:
            raise RequestError(violations)
        return cls(**{**DEFAULTS, **mapping})

    def _repr_html_(self) -> str:
        """Return a table of the fields that are not 0, for notebooks."""
        from cubecore.presented.card import card_page

        rows = [(name, str(getattr(self, name))) for name in FIELDS if getattr(self, name)]
        return card_page(f"TCubeTiling: {len(rows)} of {len(FIELDS)} fields are not 0", rows, "")

    def to_json(self) -> dict[str, int]:
        """Return the 50 fields in the structure's order.

        Returns
        -------
        dict
            An integer for each field.
        """
        return {name: getattr(self, name) for name in FIELDS}

    @classmethod
    def from_bytes(cls, blob: bytes, subject: str = "tiling blob") -> "TCubeTiling":
        """Return the tiling of 200 little-endian bytes.

        Parameters
        ----------
        blob : bytes
            The bytes of the structure.
        subject : str
            The beginning of the message if they are not.

        Returns
        -------
        TCubeTiling
            The tiling.

        Raises
        ------
        RequestError
            If the length is not 200 bytes.
        """
        if len(blob) != SIZE_BYTES:
            raise refuse(
                subject, f"be {SIZE_BYTES} B long ({len(FIELDS)} x int32)", f"{len(blob)} B"
            )
        return cls(*_LAYOUT.unpack(blob))

    def to_bytes(self) -> bytes:
        """Return the 200 little-endian bytes of the structure.

        Returns
        -------
        bytes
            Four bytes for each field.

        Examples
        --------
        >>> tiling = cubecore.plan(m=64, n=64, k=64).tiling
        >>> cubecore.TCubeTiling.from_bytes(tiling.to_bytes()) == tiling
        True
        """
        return _LAYOUT.pack(*(getattr(self, name) for name in FIELDS))

    def mismatches(self, m: int, n: int, k: int, kb: int | None) -> tuple[Violation, ...]:
        """Return the sizes that differ from a matmul's.

        Parameters
        ----------
        m, n, k : int
            The matmul's sizes, elements.
        kb : int or None
            B's size along K, where it is not `k`.

        Returns
        -------
        tuple of Violation
            One for each of M, N, Ka, Kb that differs.
        """
        wanted = (
            ("M", "m", m),
            ("N", "n", n),
            ("Ka", "k", k),
            ("Kb", "k" if kb is None else "kb", k if kb is None else kb),
        )
        return tuple(
            Violation(f"tiling.{name}", f"equal the problem's {key} = {value}", str(extent))
            for name, key, value in wanted
            if (extent := getattr(self, name)) != value
        )

    def require_match(self, m: int, n: int, k: int, kb: int | None) -> None:
        """Refuse a tiling of other sizes than a matmul's.

        Parameters
        ----------
        m, n, k : int
            The matmul's sizes, elements.
        kb : int or None
            B's size along K, where it is not `k`.

        Raises
        ------
        RequestError
            One violation for each of M, N, Ka, Kb that differs.
        """
        if violations := self.mismatches(m, n, k, kb):
            raise RequestError(violations)


Tilings = TCubeTiling | Columns
"""One tiling, or many: a rule and the cost read either by the fields' names."""


FIELDS: tuple[str, ...] = tuple(f.name for f in fields(TCubeTiling))
"""The field names in the struct's order."""
_LAYOUT = struct.Struct(f"<{len(FIELDS)}i")
SIZE_BYTES = _LAYOUT.size
"""200: 50 x int32, no padding."""


RESERVED_FIELDS = (
    *("shareMode", "shareL1Size", "shareL0CSize", "shareUbSize"),
    *("batchM", "batchN", "singleBatchM", "singleBatchN"),
)
"""The fields that both editions of the page reserve (table 1)."""
UNSTATED_FIELDS = (
    *("depthAL1CacheUB", "depthBL1CacheUB"),
    *(name for name in FIELDS if "LayoutInfo" in name),
    "BatchNum",
)
"""The fields that neither edition's page has."""
DEFAULTS = dict.fromkeys(("isBias", *RESERVED_FIELDS, *UNSTATED_FIELDS, "mxTypePara"), 0)
"""Values of fields that a JSON object or a C++ initialiser leaves out: isBias's default (newer
edition, table 1), and 0 for reserved fields and for those that an edition's page does not have."""


_MOST_LISTED = 4
"""Missing fields that have a line each."""


def _name_violations(mapping: JsonMapping) -> Iterator[Violation]:
    absent = [name for name in FIELDS if name not in mapping]
    missing = [name for name in absent if name not in DEFAULTS]
    for key in mapping:
        if key not in FIELDS:
            near = did_you_mean(str(key), missing or absent or FIELDS)
            yield Violation("tiling", "have only the fields of TCubeTiling", repr(key), near)
    if len(missing) > _MOST_LISTED:
        needed = len(FIELDS) - len(DEFAULTS)
        more = f"missing are {first_few(missing, _MOST_LISTED)}"
        need = f"give the {needed} fields of TCubeTiling without a default"
        yield Violation("tiling", need, f"{needed - len(missing)}", more)
        return
    for name in missing:
        yield Violation(f"tiling.{name}", "", "", sentence=f"{MISSING}tiling.{name}")


def _value_violations(name: str, value: Any) -> list[Violation]:
    if not isinstance(value, Integral) or isinstance(value, bool):
        return [Violation(f"tiling.{name}", "be an integer", shown(value))]
    if not INT32_MIN <= value <= INT32_MAX:  # type: ignore[operator]
        return [Violation(f"tiling.{name}", "fit int32", shown(value, str))]
    return []
