"""Rules about operands as they are stored: NZ sizes and shares, 4-bit rows.

An NZ matrix is whole fractals: 16 along its outer axis, C0 along its inner one, the axis that is
stored contiguously. Table 1 of TCubeTiling structure names the axes as if nothing were transposed;
the vendor's Matmul pages (table 3) name outer and inner. The effective reading asks for both.
"""

from typing import Any

from cubecore.layouts import nz_multiple
from cubecore.tiling.rules.model import Measure, Measurer, Remedy, RuleCase, rule, set_fields
from cubecore.units import FRACTAL_ROWS, INT32_MAX, align_up

_EXTENT_ROWS = ("000/t1/M", "001/t1/M")
_SHARE_ROWS = ("000/t1/singleCoreM", "001/t1/singleCoreM")
_KEYS = {"M": "m", "N": "n", "Ka": "k", "Kb": "kb"}


def _padded(case: RuleCase, field: str, extent: int) -> Remedy | None:
    """Return the remedy that pads a size of the operands, in the request and in the tiling."""
    if extent > INT32_MAX:
        return None
    key = _KEYS[field]
    fields = {field: extent}
    if case.problem.kb is None and field in {"Ka", "Kb"}:
        key, fields = "k", {"Ka": extent, "Kb": extent}
    return Remedy(f"pad {key} to {extent}", fields, {key: extent})


def padded_k(case: RuleCase, share: int) -> Remedy | None:
    """Return the remedy that gives a core `share` of K and pads the operands behind it."""
    if share > INT32_MAX:
        return None
    t = case.tiling
    fields = {"singleCoreK": share, "Ka": max(t.Ka, share), "Kb": max(t.Kb, share)}
    keys = {"k": max(case.problem.k, share)}
    if case.problem.kb is not None:
        keys["kb"] = max(case.problem.kb, share)
    return Remedy(f"pad k to {share}", fields, keys)


def _nz_multiple(case: RuleCase, operand: str, *, along_k: bool) -> int:
    """Return what an axis of an NZ operand is a multiple of, in the case's reading."""
    kind = case.a if operand == "a" else case.b
    if case.effective:
        inner = along_k == case.k_is_inner(operand)
        return nz_multiple(kind.c0, along_k=along_k, inner=inner)
    return kind.c0 if along_k else FRACTAL_ROWS


def _nz_extent(case: RuleCase, operand: str, field: str) -> Measure | None:
    """Measure one size of an operand that is stored as NZ."""
    if getattr(case.problem, f"format_{operand}") != "NZ":
        return None
    multiple = _nz_multiple(case, operand, along_k=field in {"Ka", "Kb"})
    value = getattr(case.tiling, field)
    return Measure(
        used=value,
        limit=multiple,
        relation="multiple",
        unit="",
        terms=lambda: f"{field} of {operand.upper()} as NZ",
        remedy=lambda: _padded(case, field, align_up(value, multiple)),
    )


def _nz_share(case: RuleCase, operand: str, field: str, rule_fn: Measurer) -> Measure | None:
    """Measure a core's share along one axis of an operand that is stored as NZ."""
    if getattr(case.problem, f"format_{operand}") != "NZ":
        return None
    kind = case.a if operand == "a" else case.b
    along_k = field == "singleCoreK"
    multiple = _nz_multiple(case, operand, along_k=along_k)
    if along_k:
        multiple = max(multiple, kind.c0 * kind.nz_fractals)
    value = getattr(case.tiling, field)

    def remedy() -> Remedy | None:
        """Return the next multiple; where it is beyond K, K is padded with it."""
        wanted = align_up(max(value, 1), multiple)
        if along_k and wanted > case.problem.shared_k:
            return padded_k(case, wanted)
        return set_fields(case, rule_fn, **{field: wanted})

    return Measure(
        used=value,
        limit=multiple,
        relation="multiple",
        unit="",
        terms=lambda: f"{field} of {operand.upper()} as NZ",
        remedy=remedy,
    )


def _declare_extent(operand: str, field: str, rule_id: str, letter: str) -> None:
    @rule(
        rule_id,
        f"{field} of an NZ {operand.upper()} is a whole number of fractals",
        rows=_EXTENT_ROWS,
        text=(
            f"Require {field} to be a multiple of {letter} where {operand.upper()} is stored as "
            "NZ; extents of ND operands are free. Effective reading: also a multiple of C0 where "
            "the axis is the inner one as stored, of 16 where it is the outer one (vendor's Matmul "
            "pages, table 3). Documented reading: transposition makes no difference; both editions "
            "agree."
        ),
    )
    def measure(case: RuleCase) -> Measure | None:
        """Measure the size."""
        return _nz_extent(case, operand, field)


def _declare_share(operand: str, field: str, rule_id: str, letter: str) -> None:
    @rule(
        rule_id,
        f"{field} of an NZ {operand.upper()} is a whole number of fractals",
        rows=_SHARE_ROWS,
        text=(
            f"Require {field} to be a multiple of {letter} where {operand.upper()} is stored as "
            "NZ. Effective reading: also a multiple of C0 where the axis is the inner one as "
            "stored, of 16 where it is the outer one. Documented reading: transposition makes no "
            "difference; both editions agree (the older names fractal_num without its values)."
        ),
    )
    def measure(case: RuleCase) -> Measure | None:
        """Measure the share."""
        return _nz_share(case, operand, field, measure)


_C0 = "C0"
_PIECES = "C0 * fractal_num (2 for float32, 1 else)"
_declare_extent("a", "M", "A-NZ-M", "16")
_declare_extent("a", "Ka", "A-NZ-K", _C0)
_declare_extent("b", "Kb", "B-NZ-K", _C0)
_declare_extent("b", "N", "B-NZ-N", "16")
_declare_share("a", "singleCoreM", "A-NZ-SINGLE-CORE-M", "16")
_declare_share("a", "singleCoreK", "A-NZ-SINGLE-CORE-K", _PIECES)
_declare_share("b", "singleCoreK", "B-NZ-SINGLE-CORE-K", _PIECES)
_declare_share("b", "singleCoreN", "B-NZ-SINGLE-CORE-N", "16")

_EVEN_ROWS = ("000/t2/mx",)
_EVEN_BASIS = "vendor's Matmul pages, MatmulType: the inner axis of 4-bit inputs is even"
_EVEN_TEXT = """Require the inner axis of a 4-bit {operand} to be even.

Two elements share a byte. The inner axis is {plain}, or {transposed} if {operand} is transposed.
Documented reading, newer edition: float4 as an input of MxMatmul; the older edition has no float4.
Effective reading, both editions: int4 too, and a core's share along that axis, which must begin at
a whole byte."""


def _is_even(
    case: RuleCase, operand: str, plain: str, transposed: str, rule_fn: Measurer
) -> Measure | None:
    """Measure the inner axis of a 4-bit operand: the field where it is plain, or transposed."""
    kind = case.a if operand == "a" else case.b
    stated = case.edition == "newer" and kind.kind == "float"
    is_share = plain.startswith("single")
    if kind.bits != 4 or not (case.effective or (stated and not is_share)):
        return None
    field = transposed if getattr(case.problem, f"trans_{operand}") else plain
    value: Any = getattr(case.tiling, field)

    def remedy() -> Remedy | None:
        """Return the next even number; a size is padded, and so is K behind its share."""
        even = align_up(value, 2)
        if not is_share:
            return _padded(case, field, even)
        if field == "singleCoreK" and even > case.problem.shared_k:
            return padded_k(case, even)
        return set_fields(case, rule_fn, **{field: even})

    return Measure(
        used=value,
        limit=2,
        relation="multiple",
        unit="",
        terms=lambda: f"{field} (rows of {operand.upper()} in {kind})",
        remedy=remedy,
    )


def _declare_even(operand: str, plain: str, transposed: str, rule_id: str, what: str) -> None:
    @rule(
        rule_id,
        f"{what} of a 4-bit {operand.upper()} are even",
        rows=() if plain.startswith("single") else _EVEN_ROWS,
        basis=_EVEN_BASIS,
        text=_EVEN_TEXT.format(operand=operand.upper(), plain=plain, transposed=transposed),
    )
    def measure(case: RuleCase) -> Measure | None:
        """Measure the inner axis."""
        return _is_even(case, operand, plain, transposed, measure)


_declare_even("a", "Ka", "M", "A-4BIT-ROW", "stored rows")
_declare_even("b", "N", "Kb", "B-4BIT-ROW", "stored rows")
_declare_even("a", "singleCoreK", "singleCoreM", "A-4BIT-SHARE", "a core's rows")
_declare_even("b", "singleCoreN", "singleCoreK", "B-4BIT-SHARE", "a core's rows")
