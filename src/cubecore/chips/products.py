"""Element types that the Cube of an architecture multiplies (Mmad, tables 4 to 7)."""

from dataclasses import dataclass

from cubecore.citations import cite

_TABLE_4 = cite("002", "table 4")


@dataclass(frozen=True, slots=True)
class Combination:
    """One row: A x B accumulates in `c`; `bias` is what BiasTable may hold, empty for none."""

    a: str
    b: str
    c: str
    bias: str
    source: str

    @property
    def bias_source(self) -> str:
        """The place that says which bias a row takes."""
        if self.source == _TABLE_4:
            return cite("002", "table 5")
        return self.source if self.bias else cite("002", "table of products")

    @property
    def bias_inputs(self) -> tuple[str, ...]:
        """Types that a bias may have in global memory: float16 is widened on its way to float32."""
        widened = ("float16",) if (self.a, self.bias) == ("float16", "float32") else ()
        return (self.bias, *widened) if self.bias else ()


_A2 = (
    Combination("int8", "int8", "int32", "int32", _TABLE_4),
    Combination("float16", "float16", "float32", "float32", _TABLE_4),
    Combination("float32", "float32", "float32", "float32", _TABLE_4),
    Combination("bfloat16", "bfloat16", "float32", "float32", _TABLE_4),
    Combination("int4", "int4", "int32", "", _TABLE_4),
)
_EARLIER = (
    Combination("int8", "int8", "int32", "int32", cite("004", "table 2")),
    Combination("float16", "float16", "float32", "float32", cite("004", "table 2")),
)
_EIGHT_BIT = ("float8_e4m3fn", "float8_e5m2")
_FOUR_BIT = ("float4_e2m1fn", "float4_e1m2")
_950 = (
    *(row for row in _A2 if row.a != "int4"),
    *(
        Combination(a, b, "float32", "float32", "asc-devkit, cycles of Mmad")
        for a in _EIGHT_BIT
        for b in _EIGHT_BIT
    ),
    Combination("hifloat8", "hifloat8", "float32", "float32", "asc-devkit, cycles of Mmad"),
    *(
        Combination(
            a, b, "float32", "float32", "asc-devkit, cycles of Mmad; asc-devkit, asc_mmad_mx"
        )
        for a in _FOUR_BIT
        for b in _FOUR_BIT
    ),
)

CUBE_COMBINATIONS: dict[str, tuple[Combination, ...]] = {
    "2201": _A2,
    "3510": _950,
    "3113": (Combination("float16", "float16", "float16", "", cite("002", "table 6")),),
    "3003": (
        Combination("int8", "int8", "int32", "int32", cite("002", "table 7")),
        Combination("float16", "float16", "float16", "float16", cite("002", "table 7")),
    ),
}
"""Rows by architecture; an architecture that is not here has `EARLIER_COMBINATIONS`.

Kirin 9030 (3113) takes no bias: so says the page Mmad's table of matmuls, which table 6
contradicts with a half bias. Uncertain.
"""

EARLIER_COMBINATIONS = _EARLIER
HALF_SUM_ARCHS = ("3003", "3113")
"""Architectures that sum matmuls of halves in half (Mmad, tables 6 and 7)."""


UNIT_FLAG_ARCHS = ("2201", "3510")
"""Architectures whose `mad` has a unit flag: Atlas A2 and A3 (Mmad, table 3), and 3510, whose
page of asc_mmad has the parameter."""
L0A_NZ_ARCHS = ("3510",)
"""Architectures that hold the left matrix as NZ in L0A; the others hold it as ZZ (asc-devkit,
LoadData 3D, constraints: L0A and L0B by matmul)."""
MATMUL_UNIT_FLAG_ARCHS = UNIT_FLAG_ARCHS
"""Architectures where the Matmul templates can use it (asc-devkit, matmul_high_performance)."""
IBSHARE_ARCHS = ("2201", "3510")
"""Architectures with the template IBShare (vendor's GetIBShareNormConfig: A2, A3, Atlas 350)."""
BIAS_TABLE_SOURCE_ARCHS = ("2201", "3510")
"""Architectures where cmatrixSource may be true (Mmad, table 3; on Kirin it is false only;
3510: asc-devkit, Mmad)."""


_USUAL_ARCHS = ("2201", "3510")
FIXPIPE_ARCHS = (*_USUAL_ARCHS, "3003", "3113")
"""Architectures whose modes of fixpipe are known; the others are taken to have those of 2201."""


@dataclass(frozen=True, slots=True)
class FixpipeRow:
    """One row of fixpipe's conversion table: the result type of a mode for an accumulator type.

    `scaling` is ``none``, ``one`` scale for the tile, or one for each ``column``. `to` are the
    memories that take it, `archs` the architectures that have it.
    """

    mode: str
    source: str
    target: str
    scaling: str = "none"
    to: tuple[str, ...] = ("GM", "L1")
    archs: tuple[str, ...] = _USUAL_ARCHS


def _scaled(
    source: str,
    target: str,
    one: str,
    *,
    to: tuple[str, ...],
    archs: tuple[str, ...],
    also: tuple[str, ...] = (),
) -> tuple[FixpipeRow, ...]:
    """Return the rows of one scale and of one a column; `also` are archs of the first alone."""
    return (
        FixpipeRow(one, source, target, "one", to, (*archs, *also)),
        FixpipeRow(f"V{one}", source, target, "column", to, archs),
    )


_BOTH, _TO_L1 = ("GM", "L1"), ("L1",)


FIXPIPE_ROWS = (
    FixpipeRow("NoQuant", "float32", "float32", to=("GM",)),
    FixpipeRow("NoQuant", "int32", "int32", to=("GM",), archs=(*_USUAL_ARCHS, "3003")),
    FixpipeRow("NoQuant", "float16", "float16", to=_BOTH, archs=HALF_SUM_ARCHS),
    FixpipeRow("NoQuant", "float32", "float32", to=_TO_L1, archs=("3510",)),
    FixpipeRow("NoQuant", "int32", "int32", to=_TO_L1, archs=("3510",)),
    FixpipeRow("F322F16", "float32", "float16", archs=(*_USUAL_ARCHS, *HALF_SUM_ARCHS)),
    FixpipeRow("F322BF16", "float32", "bfloat16"),
    *_scaled("int32", "float16", "DEQF16", to=_BOTH, archs=_USUAL_ARCHS, also=HALF_SUM_ARCHS),
    *_scaled("float32", "int8", "QF322B8_PRE", to=_BOTH, archs=_USUAL_ARCHS, also=("3003",)),
    *_scaled("int32", "int8", "REQ8", to=_BOTH, archs=_USUAL_ARCHS, also=("3003",)),
    *_scaled("float32", "int4", "QF322B4_PRE", to=_TO_L1, archs=("2201",)),
    *_scaled("int32", "int4", "REQ4", to=_TO_L1, archs=("2201",)),
    *_scaled("float32", "float8_e4m3fn", "QF322FP8_PRE", to=_BOTH, archs=("3510",)),
    *_scaled("float32", "hifloat8", "QF322HIF8_PRE", to=_BOTH, archs=("3510",)),
    *_scaled("float32", "hifloat8", "QF322HIF8_PRE_HYBRID", to=_BOTH, archs=("3510",)),
    *_scaled("int32", "bfloat16", "QS322BF16_PRE", to=_BOTH, archs=("3510",)),
    *_scaled("float32", "float16", "QF322F16_PRE", to=_BOTH, archs=("3510",)),
    *_scaled("float32", "bfloat16", "QF322BF16_PRE", to=_BOTH, archs=("3510",)),
    *_scaled("float32", "float32", "QF322F32_PRE", to=_BOTH, archs=("3510",)),
)
"""Every mode (asc-devkit, asc_copy_l0c2gm and asc_copy_l0c2l1; Kirin: Fixpipe, tables of types,
and no copy to the Fixpipe buffer; that half sums are written as they are is inferred); int8 may be
uint8."""

FIXPIPE_CONVERSIONS = {
    (row.source, row.target): row.mode for row in FIXPIPE_ROWS if row.scaling == "none"
}
"""Fixpipe's conversions from one accumulator type to another, without any scale."""


def fixpipe_rows(to: str) -> tuple[FixpipeRow, ...]:
    """Return the conversions on the way to a memory: those to UB are those to global memory."""
    way = "GM" if to == "UB" else to
    return tuple(row for row in FIXPIPE_ROWS if way in row.to)


def fixpipe_modes(to: str, *archs: str) -> tuple[str, ...]:
    """Return the modes of some architectures that write to a memory: ``GM``, ``L1`` or ``UB``."""
    rows = (row for row in fixpipe_rows(to) if not set(archs).isdisjoint(row.archs))
    return tuple(dict.fromkeys(row.mode for row in rows))


def fixpipe_sources(mode: str) -> tuple[str, ...]:
    """Return the accumulator types that a mode takes."""
    return tuple(dict.fromkeys(row.source for row in FIXPIPE_ROWS if row.mode == mode))


def fixpipe_row(mode: str, source: str) -> FixpipeRow | None:
    """Return what `mode` makes of an accumulator of type `source`; None if it does not take it."""
    return _BY_MODE.get((mode, source))


_BY_MODE = {(row.mode, row.source): row for row in FIXPIPE_ROWS}


def quantising_mode(source: str, target: str, scaling: str) -> str | None:
    """Return the mode that makes `target` of `source` with ``one`` scale or one a ``column``."""
    asked = (source, target, scaling)
    return next((r.mode for r in FIXPIPE_ROWS if (r.source, r.target, r.scaling) == asked), None)


def plain_outputs(accumulator: str) -> tuple[str, ...]:
    """Return the types that fixpipe writes from an accumulator without quantisation."""
    return tuple(to for of, to in FIXPIPE_CONVERSIONS if of == accumulator)


def combinations(arch: str) -> tuple[Combination, ...]:
    """Return the rows of an architecture."""
    return CUBE_COMBINATIONS.get(arch, EARLIER_COMBINATIONS)


def combination(arch: str, a: str, b: str) -> Combination | None:
    """Return the row for A of type `a` and B of type `b`, or None if there is none."""
    return next((row for row in combinations(arch) if (row.a, row.b) == (a, b)), None)
