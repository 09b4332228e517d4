"""Rules of MxMatmul: K, and what mxTypePara loads of the scales.

The older edition does not know MxMatmul: its documented reading has none of these rules. mxTypePara
acts in the MDL template only, so that only there anything is asked of it.
"""

from cubecore.tiling.model.mx_type_para import scale_factor, spare_bits, with_factor
from cubecore.tiling.model.problem import SCALE_GROUP
from cubecore.tiling.rules.blocks import alignment
from cubecore.tiling.rules.extents import clamp
from cubecore.tiling.rules.formats import padded_k
from cubecore.tiling.rules.model import Measure, Measurer, Remedy, RuleCase, rule, set_fields
from cubecore.units import align_up

BASE_K_MULTIPLE = 64
"""baseK of MxMatmul: two groups of 32 that share a scale each (TCubeTiling, newer, table 1)."""
_ROWS = ("000/t1/mxTypePara",)


def _stated(case: RuleCase) -> bool:
    return case.problem.mx and (case.effective or case.edition == "newer")


def _factors_act(case: RuleCase) -> bool:
    return _stated(case) and case.problem.template == "MDL"


def _set_factor(case: RuleCase, rule_fn: Measurer, name: str, factor: int) -> Remedy | None:
    value = with_factor(case.tiling.mxTypePara, name, factor)
    return set_fields(case, rule_fn, mxTypePara=value)


@rule("MX-BASE-K-ALIGNMENT", "baseK is a multiple of 64", rows=("000/t1/baseM",))
def mx_base_k_alignment(case: RuleCase) -> Measure | None:
    """Require baseK to be a multiple of 64 in MxMatmul: each scale of a pair covers 32 elements.

    Both readings of the newer edition agree; the older edition does not state it.
    """
    if not _stated(case):
        return None
    return alignment(case, "baseK", BASE_K_MULTIPLE, mx_base_k_alignment)


@rule("MX-SINGLE-CORE-K", "a core's K is a whole number of scale pairs", rows=("000/t2/mx",))
def mx_single_core_k(case: RuleCase) -> Measure | None:
    """Require singleCoreK, rounded up to 32, to be an even multiple of 32 unless A and B lie in GM.

    With both in GM singleCoreK is free, and advice says that an odd number of scales along K must
    be padded with a 0. Both readings of the newer edition agree; the older edition does not state
    it.
    """
    if not _stated(case) or {case.problem.pos_a, case.problem.pos_b} == {"GM"}:
        return None
    value = case.tiling.singleCoreK

    def remedy() -> Remedy | None:
        """Return the next even multiple; where it is beyond K, K is padded with it."""
        wanted = align_up(max(value, 1), 2 * SCALE_GROUP)
        if wanted > case.problem.shared_k:
            return padded_k(case, wanted)
        return set_fields(case, mx_single_core_k, singleCoreK=wanted)

    return Measure(
        used=align_up(value, SCALE_GROUP),
        limit=2 * SCALE_GROUP,
        relation="multiple",
        unit="",
        terms=lambda: f"singleCoreK {value} rounded up to {SCALE_GROUP}",
        remedy=remedy,
    )


@rule("MX-SPARE-BITS", "only the factors' bits are set", rows=_ROWS)
def mx_spare_bits(case: RuleCase) -> Measure | None:
    """Require bits 7, 15, 23 and 31 of mxTypePara to be 0. MxMatmul with template MDL only.

    Both readings of the newer edition agree; the older edition does not state it.
    """
    if not _factors_act(case):
        return None
    field = case.tiling.mxTypePara
    return Measure(
        used=spare_bits(field),
        limit=0,
        relation="==",
        unit="",
        terms=lambda: "bits 7, 15, 23 and 31 of mxTypePara",
        remedy=lambda: set_fields(
            case, mx_spare_bits, mxTypePara=field & 0xFFFFFFFF ^ spare_bits(field)
        ),
    )


def _declare_factor(name: str, rule_id: str) -> None:
    @rule(
        rule_id,
        f"{name} is 1 to 127",
        rows=_ROWS,
        text=(
            f"Require {name}, 7 bits of mxTypePara, to be at least 1. MxMatmul with template MDL "
            "only. Both readings of the newer edition agree; the older edition does not state it."
        ),
    )
    def measure(case: RuleCase) -> Measure | None:
        """Measure the factor."""
        if not _factors_act(case):
            return None
        return Measure(
            used=scale_factor(case.tiling.mxTypePara, name),
            limit=1,
            relation=">=",
            unit="",
            terms=lambda: f"{name} of mxTypePara",
            remedy=lambda: _set_factor(case, measure, name, 1),
        )


_declare_factor("scaleFactorKa", "MX-FACTOR-KA")
_declare_factor("scaleFactorKb", "MX-FACTOR-KB")
_declare_factor("scaleFactorM", "MX-FACTOR-M")
_declare_factor("scaleFactorN", "MX-FACTOR-N")


def _declare_whole_k(scale: str, name: str, factor_k: str, step: str, rule_id: str) -> None:
    @rule(
        rule_id,
        f"more of {scale} than one row of blocks only with all of K",
        rows=_ROWS,
        text=(
            f"Require {name} to be 1 unless baseK * {step} * {factor_k} >= singleCoreK. MxMatmul "
            "with template MDL only. Both readings of the newer edition agree; the older edition "
            "does not state it."
        ),
    )
    def measure(case: RuleCase) -> Measure | None:
        """Measure the factor where a load of the scale does not cover K."""
        if not _factors_act(case):
            return None
        t = case.tiling
        steps, factor = getattr(t, step), scale_factor(t.mxTypePara, factor_k)
        loaded = t.baseK * steps * factor
        return Measure(
            used=scale_factor(t.mxTypePara, name),
            limit=1,
            relation="<=",
            unit="",
            authority=f"{scale} with a part of K",
            terms=lambda: (
                f"baseK x {step} x {factor_k} = {t.baseK} x {steps} x {factor} = {loaded} of "
                f"singleCoreK {t.singleCoreK}: {name}"
            ),
            applies=loaded < t.singleCoreK,
            remedy=lambda: _set_factor(case, measure, name, 1),
        )


_declare_whole_k("scaleA", "scaleFactorM", "scaleFactorKa", "stepKa", "MX-SCALE-A-WHOLE-K")
_declare_whole_k("scaleB", "scaleFactorN", "scaleFactorKb", "stepKb", "MX-SCALE-B-WHOLE-K")


def _declare_extent(name: str, base: str, step: str, single: str, rule_id: str) -> None:
    @rule(
        rule_id,
        f"{name} loads no more than exists",
        rows=_ROWS,
        text=(
            f"Require {base} * {step} * {name} to be at most {single} where the factor is above 1. "
            f"MxMatmul with template MDL only. Effective reading: at most {single} rounded up to a "
            f"whole number of steps, since the last step may be ragged. Documented reading, newer "
            f"edition: at most {single}; the older edition does not state it."
        ),
    )
    def measure(case: RuleCase) -> Measure | None:
        """Measure what one load of the scale covers along the axis."""
        if not _factors_act(case):
            return None
        t = case.tiling
        factor = scale_factor(t.mxTypePara, name)
        one, extent = getattr(t, base) * getattr(t, step), getattr(t, single)
        limit = align_up(extent, clamp(one)) if case.effective else extent
        return Measure(
            used=one * factor,
            limit=limit,
            relation="<=",
            unit="",
            authority=lambda: f"{single} {extent} in steps of {one}" if case.effective else single,
            terms=lambda: (
                f"{base} x {step} x {name} = {getattr(t, base)} x {getattr(t, step)} x {factor}"
            ),
            applies=(factor > 1) & (one > 0) & (extent > 0),
            remedy=lambda: _set_factor(case, measure, name, clamp(limit // one)),
        )


_declare_extent("scaleFactorKa", "baseK", "stepKa", "singleCoreK", "MX-SCALE-KA-EXTENT")
_declare_extent("scaleFactorKb", "baseK", "stepKb", "singleCoreK", "MX-SCALE-KB-EXTENT")
_declare_extent("scaleFactorM", "baseM", "stepM", "singleCoreM", "MX-SCALE-M-EXTENT")
_declare_extent("scaleFactorN", "baseN", "stepN", "singleCoreN", "MX-SCALE-N-EXTENT")
