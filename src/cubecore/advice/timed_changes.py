"""Advice by timing: changes of a kernel, its request, its data or its chip, each timed anew.

Nothing here is a rule of thumb. A change is made, a tiling that it asks for is searched, the whole
launch is timed again, and the difference is the gain.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from inspect import getdoc
from types import MappingProxyType
from typing import Any

from cubecore.advice.reasons import on_boundary
from cubecore.aliases import Json, JsonMapping
from cubecore.chips import Chip
from cubecore.chips.model import number_type
from cubecore.errors import CubecoreError, DeadlockError, NoLegalTilingError
from cubecore.planning.planner import tilings_within
from cubecore.planning.timed_product import TimedProduct
from cubecore.presented.text import duration, table
from cubecore.tiling.cost.closed_form import predict
from cubecore.tiling.model.core_grid import core_blocks
from cubecore.tiling.model.epilogue import Epilogue
from cubecore.tiling.model.field_limits import PLANNED_FIELDS, FieldLimits, Limits
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.tiling.solver.solver import Ranked
from cubecore.timing.records import Timeline
from cubecore.units import ceil_div

_CANDIDATES = 3
"""Tilings of a kind that are timed beside the closed form's best, which need not be the fastest."""
_GRID = ("usedCoreNum", "singleCoreM", "singleCoreN", "singleCoreK")
FASTER = 2
"""The factor by which parts of a what-if chip are faster, larger or more."""
HARDWARE: Mapping[str, tuple[tuple[str, ...], str]] = {
    "device memory": (("hbm_bytes_per_second",), "device memory twice as fast"),
    "misses": (
        ("gm_miss_bytes_per_cycle", "gm_miss_ub_bytes_per_cycle"),
        "a core gets what L2 lacks twice as fast",
    ),
    "L2 link": (("gm_to_l1_bytes_per_cycle",), "twice the bytes per cycle from L2 to a core"),
    "L2 size": (("l2_bytes",), "twice the L2"),
    "L1 links": (
        ("l1_to_l0a_bytes_per_cycle", "l1_to_l0b_bytes_per_cycle"),
        "twice the bytes per cycle from L1 to L0",
    ),
    "C's link": (("l0c_to_gm_bytes_per_cycle",), "C leaves a core twice as fast"),
    "UB links": (
        ("gm_to_ub_bytes_per_cycle", "ub_to_gm_bytes_per_cycle"),
        "twice the bytes per cycle between UB and L2",
    ),
}
"""Parts of the chip that are made twice what they are, with what that means."""
_TEMPLATE_STEPS = (None, "MDL", "NORM")
"""Kinds of kernel that are the library's with a tiling of run time."""
_NOT_OF_PRODUCTS = ("UB links",)
_LEAST_GAIN = 0.0005
"""Share of the time below which a change saves nothing that a tenth of a percent would show."""


@dataclass(frozen=True, slots=True)
class TimedChange:
    """One change and what the launch takes with it.

    `kind` names what is changed, `of` whose it is: the ``tiling``'s, the ``request``'s, the
    ``kernel``'s code, the ``data``'s layout or the ``chip``'s; `what` says how. `gain` is the share
    of the time that it saves, negative where it costs. `settings` are the chip's fields and `keys`
    the problem's that ask for it; `tiling` is the tiling that was timed, where it is another one.
    """

    kind: str
    of: str
    what: str
    cycles: int
    us: float
    gain: float
    limited_by: str
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    keys: JsonMapping = field(default_factory=lambda: MappingProxyType({}))
    tiling: TCubeTiling | None = None

    def to_json(self) -> Json:
        """Return the change as JSON."""
        return {
            "kind": self.kind,
            "of": self.of,
            "what": self.what,
            "us": self.us,
            "cycles": self.cycles,
            "gain": self.gain,
            "limited_by": self.limited_by,
            "set": dict(self.settings),
            "problem": dict(self.keys),
            "tiling": None if self.tiling is None else self.tiling.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Untried:
    """A kind of change that cannot be made here, and why."""

    kind: str
    reason: str

    def to_json(self) -> dict[str, str]:
        """Return it as JSON."""
        return {"kind": self.kind, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class TimedChanges:
    """Every change that was timed, the most helpful first, and the kinds that were not.

    Changes of the chip come behind those that a user can make.
    """

    tried: tuple[TimedChange, ...]
    untried: tuple[Untried, ...] = ()

    def to_json(self) -> Json:
        """Return ``{changes, untried}``."""
        return {
            "changes": [change.to_json() for change in self.tried],
            "untried": [kind.to_json() for kind in self.untried],
        }

    @property
    def lines(self) -> list[str]:
        """The changes as text, with those that gain nothing and those that were not tried."""
        significant = [change for change in self.tried if change.gain >= _LEAST_GAIN]
        of_program = [change for change in significant if change.of != "chip"]
        lines = ["What would help, each timed anew"]
        lines += _changes_table(of_program) if of_program else ["  nothing that was tried"]
        if len(of_program) < len(significant):
            wider = [change for change in significant if change.of == "chip"]
            lines += ["", "A chip that has more, each timed anew", *_changes_table(wider)]
        vain = [c for c in self.tried if c.gain < _LEAST_GAIN]
        if vain:
            lines += ["", "No gain from", *table([(f"{c.kind}:", c.what) for c in vain])]
        if self.untried:
            lines += ["", "Not tried", *table([(f"{u.kind}:", u.reason) for u in self.untried])]
        return lines


def _changes_table(changes: Iterable[TimedChange]) -> list[str]:
    rows = [("saves", "then", "of", "change")]
    rows += [(f"{c.gain:.1%}", duration(c.us), c.of, f"{c.kind}: {c.what}") for c in changes]
    return table(rows)


@dataclass(frozen=True, slots=True)
class _Variant:
    """A changed matmul and how the change is described."""

    of: str
    what: str
    product: TimedProduct
    settings: Mapping[str, str] = field(default_factory=dict)
    keys: JsonMapping = field(default_factory=dict)


class _UntriedChange(Exception):  # noqa: N818 - says why a change is not tried, which is no error
    """The reason for which a change cannot be made."""


def tiling_change(kind: str, given: TCubeTiling, ranked: Ranked, cycles: int) -> TimedChange:
    """Return another tiling as a change of one that takes so many cycles."""
    new = ranked.predicted
    what = differing(given, ranked.tiling, PLANNED_FIELDS) or "the same tiling"
    figures = (new.cycles, new.us or 0.0, 1 - new.cycles / cycles, new.limited_by)
    return TimedChange(kind, "tiling", what, *figures, tiling=ranked.tiling)


def product_changes(product: TimedProduct, line: Timeline) -> TimedChanges:
    """Return what would help a matmul whose timeline is `line`.

    Equal requests give equal answers; ties are in the order of the kinds.
    """
    tried, untried = [], []
    kind_of: dict[TCubeTiling, str] = {}
    for kind, make in PRODUCT_CHANGES.items():
        try:
            # Several kinds may arrive at one tiling: it is told once, by the first of them. Reasons
            # why a change cannot be made are part of the answer.
            variant = make(product)
            if variant.of == "tiling":
                first = kind_of.setdefault(variant.product.tiling, kind)
                if first != kind:
                    raise _UntriedChange(f"the fastest one is that of {first}")  # noqa: TRY301
            tried.append(_change(kind, variant, product, line))
        except (_UntriedChange, CubecoreError, DeadlockError) as why:
            untried.append(Untried(kind, str(why).replace("\n", "; ")))
    parts = [kind for kind in HARDWARE if kind not in _NOT_OF_PRODUCTS]
    chips = chip_changes(
        product.chip, line, lambda chip: replace(product, chip=chip).timed(), parts
    )
    return TimedChanges(_ranked([*tried, *chips.tried]), (*untried, *chips.untried))


def chip_changes(
    chip: Chip,
    line: Timeline,
    again: Callable[[Chip], Timeline],
    parts: Iterable[str] = tuple(HARDWARE),
) -> TimedChanges:
    """Return which `parts` of a chip would help a launch whose timeline is `line`.

    `again` times the launch on another chip.
    """
    tried, untried = [], []
    for kind in parts:
        names, what = HARDWARE[kind]
        if any(getattr(chip, name) is None for name in names):
            untried.append(Untried(kind, f"{' or '.join(names)} is not known"))
            continue
        settings = {name: _times(chip, name) for name in names}
        new = again(chip.what_if(settings))
        gain = 1 - new.cycles / line.cycles
        figures = (kind, "chip", what, new.cycles, new.us, gain, new.limited_by)
        tried.append(TimedChange(*figures, settings=settings))
    return TimedChanges(_ranked(tried), tuple(untried))


def _ranked(tried: list[TimedChange]) -> tuple[TimedChange, ...]:
    return tuple(sorted(tried, key=lambda change: (change.of == "chip", change.cycles)))


def _times(chip: Chip, name: str) -> str:
    """Return a field of the chip times `FASTER`, as ``--set`` takes it."""
    value = getattr(chip, name) * FASTER
    return str(value) if number_type(name) is int else repr(float(value))


def _change(kind: str, variant: _Variant, product: TimedProduct, line: Timeline) -> TimedChange:
    changed = variant.product
    new = changed.line
    what = variant.what
    if variant.of != "tiling" and changed.tiling != product.tiling:
        what += ", in another tiling"
    return TimedChange(
        kind,
        variant.of,
        what,
        new.cycles,
        new.us,
        1 - new.cycles / line.cycles,
        new.limited_by,
        variant.settings,
        variant.keys,
        None if changed.tiling == product.tiling else changed.tiling,
    )


# --- tilings


def _fastest(
    product: TimedProduct, wanted: Mapping[str, Limits], *, but: TCubeTiling | None = None
) -> TimedProduct:
    """Return the matmul in the fastest tiling that is as wanted, other than `but`.

    The likeliest are timed, since the closed form that ranks them is not the model.
    """
    limits = FieldLimits({**product.problem.fix.fields, **wanted})
    try:
        solution = tilings_within(product.problem, product.chip, _CANDIDATES, limits)
    except NoLegalTilingError:
        raise _UntriedChange("no other tiling of the kind is legal") from None
    tilings = [ranked.tiling for ranked in (solution.best, *solution.alternatives)]
    products = [replace(product, tiling=tiling) for tiling in tilings if tiling != but]
    if not products:
        raise _UntriedChange("the planner knows no other of the kind")
    return min(products, key=lambda one: one.line.cycles)


def _kept(product: TimedProduct, *names: str) -> dict[str, Limits]:
    """Return the fields of the tiling as they are."""
    values = {name: getattr(product.tiling, name) for name in names}
    return {name: Limits(value, value) for name, value in values.items()}


def differing(old: TCubeTiling, new: TCubeTiling, names: Iterable[str] = FIELDS) -> str:
    """Return which of some fields differ in two tilings, with both values."""
    pairs = [(name, getattr(old, name), getattr(new, name)) for name in names]
    return ", ".join(f"{name} {a} -> {b}" for name, a, b in pairs if a != b)


def _of_tiling(product: TimedProduct, wanted: Mapping[str, Limits]) -> _Variant:
    fastest = _fastest(product, wanted, but=product.tiling)
    return _Variant("tiling", differing(product.tiling, fastest.tiling), fastest)


def _base_block(product: TimedProduct) -> _Variant:
    """Another base block, with the depths that fit it, for the same grid of cores."""
    return _of_tiling(product, _kept(product, *_GRID, "iterateOrder"))


def _depths(product: TimedProduct) -> _Variant:
    """Other chunks in L1 and buffers of them, half to twice the steps; the likeliest are timed."""
    near = {deepened.tiling: deepened for deepened in _near_depths(product) if deepened.legal}
    near.pop(product.tiling, None)
    if not near:
        raise _UntriedChange("no other of the kind is legal")
    closed = {t: predict(t, product.problem, product.chip).cycles for t in near}
    likely = sorted(near, key=closed.__getitem__)[: _CANDIDATES + 1]
    deepened = min((near[t] for t in likely), key=lambda one: one.line.cycles)
    return _Variant("tiling", differing(product.tiling, deepened.tiling), deepened)


def _near_depths(product: TimedProduct) -> Iterator[TimedProduct]:
    t = product.tiling
    near = [sorted({max(step // 2, 1), step, 2 * step}) for step in (t.stepKa, t.stepKb)]
    for step_a, step_b, a, b in itertools.product(*near, (1, 2), (1, 2)):
        yield product.with_tiling(
            stepKa=step_a,
            stepKb=step_b,
            depthA1=t.stepM * step_a * a,
            depthB1=t.stepN * step_b * b,
        )


def _grid(product: TimedProduct) -> _Variant:
    """Another tiling altogether, on as many cores as the request allows."""
    return _of_tiling(product, {})


def _swapped(product: TimedProduct, **fields: int) -> _Variant:
    swapped = product.with_tiling(**fields)
    if not swapped.legal:
        raise _UntriedChange("the tiling would not be legal")
    return _Variant("tiling", differing(product.tiling, swapped.tiling), swapped)


def _row_starts(product: TimedProduct) -> _Variant:
    """Larger shares of the cores, so that their blocks begin where rows cost nothing more."""
    t, fields = product.tiling, dict(on_boundary(product))
    if not fields:
        raise _UntriedChange("no share of a core begins off the boundary")
    used = len(core_blocks(replace(t, **fields)))
    return _swapped(product, **fields, usedCoreNum=used)


def _accumulators(product: TimedProduct) -> _Variant:
    """One buffer of L0C in place of two, or two in place of one."""
    return _swapped(product, dbL0C=3 - product.tiling.dbL0C)


def _order(product: TimedProduct) -> _Variant:
    """Tiles along the other axis first: what L2 and L1 may still hold is another operand."""
    t = product.tiling
    m, n = min(t.singleCoreM, t.M), min(t.singleCoreN, t.N)
    if ceil_div(m, t.baseM) == 1 or ceil_div(n, t.baseN) == 1:
        raise _UntriedChange("a core has one row or column of tiles")
    return _swapped(product, iterateOrder=1 - t.iterateOrder)


def _more_cores(product: TimedProduct) -> _Variant:
    """More of the cores that there are."""
    used, limit = product.tiling.usedCoreNum, product.problem.core_limit(product.chip)
    if used >= limit:
        raise _UntriedChange(f"all {limit} cores are used")
    freed = replace(product, problem=replace(product.problem, cores=None))
    widened = _fastest(freed, {"usedCoreNum": Limits(used + 1, limit)})
    what = f"{widened.tiling.usedCoreNum} cores in place of {used}"
    return _Variant("tiling", what, widened, keys={"cores": widened.tiling.usedCoreNum})


# --- requests, code and data


def _asked(product: TimedProduct, **keys: Any) -> TimedProduct:
    """Return the matmul of a changed request in the same tiling, in another if it must."""
    changed = replace(product, problem=replace(product.problem, **keys))
    return changed if changed.legal else _fastest(changed, {})


def _unit_flag(product: TimedProduct) -> _Variant:
    """L0C handed from Mmad to fixpipe by the unit flag, or without it."""
    on = not product.problem.shares_unit_flag
    changed = _asked(product, unit_flag=on)
    what = "Mmad and fixpipe share L0C by the unit flag" if on else "without the unit flag"
    return _Variant("kernel", what, changed, keys={"unit_flag": on})


def _split_k(product: TimedProduct) -> _Variant:
    """Slices of K on cores of their own, which add up in C."""
    p, t = product.problem, product.tiling
    if t.singleCoreK < p.shared_k:
        raise _UntriedChange("K is split already")
    # Slices are added up in global memory, so that C must have the accumulator's type and no
    # epilogue may run before the sum is whole.
    keys: Json = {"split_k": True}
    whole = p.accumulator_type.name
    if p.c != whole:
        keys["c"] = whole
    if p.epilogue != Epilogue():
        keys["epilogue"] = {}
    wanted = {"singleCoreK": Limits(1, p.shared_k - 1)}
    split = Problem.from_json({**p.to_json(), **keys})
    fastest = _fastest(replace(product, problem=split), wanted)
    slices = ceil_div(p.shared_k, fastest.tiling.singleCoreK)
    what = f"{slices} slices of K add up in a C of {whole} that is 0 before"
    return _Variant("request", what, fastest, keys=keys)


def _template(product: TimedProduct) -> _Variant:
    """The other template of the Matmul API."""
    other = "NORM" if product.problem.template == "MDL" else "MDL"
    changed = replace(product.problem, template=other)
    step = None if product.step in _TEMPLATE_STEPS else product.step
    fastest = _fastest(replace(product, problem=changed, step=step), {})
    return _Variant("kernel", f"template {other}", fastest, keys={"template": other})


def _nz_weights(product: TimedProduct) -> _Variant:
    """B stored in fractals (NZ)."""
    if product.problem.format_b == "NZ":
        raise _UntriedChange("B is NZ already")
    changed = _asked(product, format_b="NZ")
    return _Variant("data", "B is stored in fractals (NZ)", changed, keys={"format_b": "NZ"})


def _padded(product: TimedProduct) -> _Variant:
    """Rows of A and B that start an odd number of 512 B apart."""
    p = product.problem
    if (p.format_a, p.format_b) == ("NZ", "NZ"):
        raise _UntriedChange("neither A nor B has rows")
    what = "rows of A and B start an odd number of 512 B apart"
    return _Variant("data", what, replace(product, padded=True))


def _constant(product: TimedProduct) -> _Variant:
    """A tiling that the compiler knows (``--step CONSTANT``)."""
    if product.step not in _TEMPLATE_STEPS:
        raise _UntriedChange("the kernel is not the library's with a tiling of run time")
    what = "the tiling known to the compiler (--step CONSTANT)"
    return _Variant("kernel", what, replace(product, step="CONSTANT"))


def _wider_chip(product: TimedProduct) -> _Variant:
    """A chip with more AI Cores, and a tiling for it."""
    names = ["aic_count", *(["aiv_count"] if product.chip.aiv_count else [])]
    settings = {name: _times(product.chip, name) for name in names}
    freed: Problem = replace(product.problem, cores=None)
    wider = replace(product, problem=freed, chip=product.chip.what_if(settings))
    what = f"{wider.chip.aic_count} AI Cores in place of {product.chip.aic_count}"
    fastest = _fastest(wider, {})
    keys = {"cores": fastest.tiling.usedCoreNum}
    return _Variant("chip", what, fastest, settings=settings, keys=keys)


PRODUCT_CHANGES: Mapping[str, Callable[[TimedProduct], _Variant]] = {
    "base block": _base_block,
    "depths": _depths,
    "L0C buffers": _accumulators,
    "core grid": _grid,
    "row starts": _row_starts,
    "order": _order,
    "unit flag": _unit_flag,
    "split K": _split_k,
    "template": _template,
    "more cores": _more_cores,
    "NZ weights": _nz_weights,
    "padded rows": _padded,
    "constant tiling": _constant,
    "AI Cores": _wider_chip,
}
"""Functions that make a changed matmul, by the kind of change; each says what the kind means."""


def meanings_of_changes() -> dict[str, str]:
    """Return the meaning of each kind of change, of a matmul or of a chip."""
    tried = {kind: getdoc(make) or "" for kind, make in PRODUCT_CHANGES.items()}
    return {**{kind: what for kind, (_, what) in HARDWARE.items()}, **tried}
