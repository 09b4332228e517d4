"""The timing model's mechanisms: what each adds, and what leaving it out does to publications.

`python -m tools.calibration.mechanisms [ARCH...]` times every case of the fits without each
mechanism in turn, constants left as they are. Where a publication would be better for it, the other
constants are fitted again without the mechanism, and with it in the same way. It writes
mechanisms.json beside this file; docs/mechanisms.md shows it.
"""

import gc
import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from statistics import median

from tools.calibration.fit_cases import FitCase, fit_cases
from tools.calibration.fitting import Cases, Fit, Vector, shipped_value
from tools.calibration.refit import DOCUMENTED, GARBAGE, STARTS

from cubecore.chips import Chip

FILE = Path(__file__).with_suffix(".json")
CHANGES = 0.01
"""A case whose time changes by more than this without a mechanism identifies it."""
_ALL = 2**62
"""Bytes that hold everything."""


@dataclass(frozen=True)
class Mechanism:
    """A mechanism: its formula, its constants, and a chip without it.

    `off` gives the fields that leave it out.
    """

    name: str
    formula: str
    constants: tuple[str, ...]
    off: Callable[[Chip], Mapping[str, object]]


def _zero(*names: str) -> Callable[[Chip], Mapping[str, object]]:
    return lambda chip: {name: 0 for name in names if getattr(chip, name) is not None}


def _table(name: str) -> Callable[[Chip], Mapping[str, object]]:
    return lambda chip: {name: dict.fromkeys(getattr(chip, name) or {}, 0)}


def _as(**same: str) -> Callable[[Chip], Mapping[str, object]]:
    return lambda chip: {name: getattr(chip, other) for name, other in same.items()}


def _none(*names: str) -> Callable[[Chip], Mapping[str, object]]:
    return lambda _: dict.fromkeys(names)


MECHANISMS = (
    Mechanism(
        "transfers of MTE2",
        "cycles for each transfer, whatever it brings",
        ("gm_to_l1_transfer_cycles", "gm_to_ub_transfer_cycles"),
        _zero("gm_to_l1_transfer_cycles", "gm_to_ub_transfer_cycles"),
    ),
    Mechanism(
        "row starts",
        "rows x cycles",
        ("gm_to_l1_row_cycles",),
        _zero("gm_to_l1_row_cycles"),
    ),
    Mechanism(
        "rows a multiple of 8 KiB apart",
        "rows x cycles x the share of their bytes that L2 holds: they meet in one bank of it",
        ("gm_to_l1_pitch_row_cycles",),
        _zero("gm_to_l1_pitch_row_cycles"),
    ),
    Mechanism(
        "rows off a 256 B boundary",
        "blocks of 32 B x cycles of the boundary that they still meet",
        ("gm_to_l1_misaligned_block_cycles",),
        _table("gm_to_l1_misaligned_block_cycles"),
    ),
    Mechanism(
        "rows brought one by one",
        "rows x cycles, where rows are too far apart for one instruction",
        ("gm_to_l1_lone_row_cycles",),
        _zero("gm_to_l1_lone_row_cycles"),
    ),
    Mechanism(
        "rows that DN2NZ transposes",
        "rows x cycles",
        ("gm_to_l1_turned_row_cycles",),
        _zero("gm_to_l1_turned_row_cycles"),
    ),
    Mechanism(
        "misses at a core's own rate",
        "missing bytes over the rate, beside all bytes over the link's",
        ("gm_miss_bytes_per_cycle", "gm_miss_ub_bytes_per_cycle"),
        _none("gm_miss_bytes_per_cycle", "gm_miss_ub_bytes_per_cycle"),
    ),
    Mechanism(
        "latency of device memory",
        "L2's latency, and more by the share of bytes that L2 misses",
        ("hbm_latency_cycles", "hbm_ub_latency_cycles", "l2_latency_cycles"),
        _as(hbm_latency_cycles="l2_latency_cycles", hbm_ub_latency_cycles="l2_latency_cycles"),
    ),
    Mechanism(
        "short rows in device memory",
        "missing bytes x (1 + constant / bytes of a stretch: rows without a gap are one)",
        ("hbm_row_bytes", "hbm_ub_row_bytes"),
        _zero("hbm_row_bytes", "hbm_ub_row_bytes"),
    ),
    Mechanism(
        "L2 over time",
        "gone: 1 - exp(-(bytes touched since / capacity)^power)",
        ("l2_bytes", "l2_survival_power"),
        lambda _: {"l2_bytes": _ALL},
    ),
    Mechanism(
        "writes to device memory",
        "kept: exp(-(bytes brought in / (reach x capacity))^2); the rest weighs more than reads",
        ("l2_write_reach", "hbm_write_weight"),
        lambda _: {"l2_write_reach": 1e9},
    ),
    Mechanism(
        "device memory ahead of its cores",
        "up to so many cycles of past idle time are used",
        ("hbm_slack_cycles",),
        _zero("hbm_slack_cycles"),
    ),
    Mechanism(
        "MTE1's head",
        "cycles of a move that its pipe had to wait for, fewer behind another",
        ("l1_to_l0_head_cycles", "l1_to_l0_queued_cycles"),
        _zero("l1_to_l0_head_cycles", "l1_to_l0_queued_cycles"),
    ),
    Mechanism(
        "MTE1 while MTE2 fills L1",
        "cycles x (1 + constant)",
        ("l1_to_l0_contention",),
        _zero("l1_to_l0_contention"),
    ),
    Mechanism(
        "the Cube's head",
        "cycles of a product that the Cube had to wait for, fewer behind another",
        ("mad_head_cycles", "mad_queued_cycles"),
        _zero("mad_head_cycles", "mad_queued_cycles"),
    ),
    Mechanism(
        "rows of fixpipe",
        "rows x cycles",
        ("l0c_to_gm_row_cycles",),
        _zero("l0c_to_gm_row_cycles"),
    ),
    Mechanism(
        "rows of fixpipe off 16 B",
        "rows x cycles",
        ("l0c_to_gm_misaligned_row_cycles",),
        _zero("l0c_to_gm_misaligned_row_cycles"),
    ),
    Mechanism(
        "the Vector unit's head",
        "cycles of each instruction",
        ("vector_head_cycles",),
        _zero("vector_head_cycles"),
    ),
    Mechanism(
        "bank conflicts of UB",
        "each repeat as often as its busiest bank group is read, or written",
        ("ub_bank_groups",),
        _none("ub_bank_groups"),
    ),
    Mechanism(
        "scalar work of a base-K step",
        "cycles, by kind of kernel",
        ("scalar_step_cycles",),
        _table("scalar_step_cycles"),
    ),
    Mechanism(
        "scalar work of a load and of a tile",
        "cycles, by kind of kernel",
        ("scalar_load_cycles", "scalar_tile_cycles"),
        lambda chip: {**_table("scalar_load_cycles")(chip), **_table("scalar_tile_cycles")(chip)},
    ),
    Mechanism(
        "start of a kernel",
        "cycles before the first instruction, by kind of kernel",
        ("start_cycles", "short_start_cycles"),
        lambda chip: {"start_cycles": 0, **_table("short_start_cycles")(chip)},
    ),
    Mechanism(
        "launch",
        "cycles of every launch, and between the kernels of a host's loop",
        ("launch_cycles", "loop_gap_cycles"),
        _zero("launch_cycles", "loop_gap_cycles"),
    ),
)


@dataclass(frozen=True)
class Effect:
    """What leaving a mechanism out does to a publication on an architecture.

    `cases` change by more than 1 % of all; `before` and `after` are medians of absolute errors.
    `fitted_with` and `fitted_without` are those after the other constants were fitted again, of a
    mechanism without which a publication would be better otherwise.
    """

    mechanism: str
    arch: str
    source: str
    cases: int
    of: int
    before: float
    after: float
    fitted_with: float | None = None
    fitted_without: float | None = None

    @property
    def _sides(self) -> tuple[float, float]:
        """The errors to compare, with the mechanism and without: fitted again, if they were."""
        if self.fitted_with is not None and self.fitted_without is not None:
            return self.fitted_with, self.fitted_without
        return self.before, self.after

    @property
    def hurts(self) -> bool:
        """True if the publication is better without the mechanism."""
        having, lacking = self._sides
        return having > lacking + CHANGES

    @property
    def helps(self) -> bool:
        """True if the publication is worse without the mechanism."""
        having, lacking = self._sides
        return lacking > having + CHANGES


Errors = Mapping[str, Sequence[float | None]]
"""By publication: the error of each case, None of one that has no time of the whole."""


def effects(archs: Collection[str]) -> Iterator[Effect]:
    """Time every case without each mechanism, and fit again where that seems better."""
    for arch in archs:
        cases = [one for one in fit_cases() if one.case.chip.arch == arch]
        shipped = errors(cases, {})
        gc.freeze()
        gc.set_threshold(GARBAGE)
        found = {one.name: _effects(one, arch, cases, shipped) for one in MECHANISMS}
        doubted = [one for one in MECHANISMS if any(each.hurts for each in found[one.name])]
        refits = fitted_again(arch, cases, doubted) if doubted else {}
        for name, rows in found.items():
            for row in rows:
                again = {
                    key: refits[each][row.source]
                    for key, each in (("fitted_with", ""), ("fitted_without", name))
                    if name in refits
                }
                yield replace(row, **again)


def _effects(
    mechanism: Mechanism, arch: str, cases: Sequence[FitCase], shipped: Errors
) -> list[Effect]:
    """Return what leaving a mechanism out does, the other constants as they are."""
    without = errors(without_mechanism(cases, mechanism), {})
    rows = []
    for source, before in sorted(shipped.items()):
        both = [
            (b, a)
            for b, a in zip(before, without[source], strict=True)
            if b is not None and a is not None  # it can be timed without the mechanism
        ]
        if both:
            changed = sum(abs(b - a) > CHANGES for b, a in both)
            medians = (_median(side) for side in zip(*both, strict=True))
            rows.append(Effect(mechanism.name, arch, source, changed, len(both), *medians))
    return rows


def without_mechanism(cases: Sequence[FitCase], mechanism: Mechanism) -> list[FitCase]:
    """Return cases on their chips without a mechanism."""
    chips = [replace(one.case.chip, **mechanism.off(one.case.chip)) for one in cases]
    return [
        FitCase(one.point, replace(one.case, chip=chip))
        for one, chip in zip(cases, chips, strict=True)
    ]


def errors(cases: Sequence[FitCase], values: Mapping[str, float]) -> Errors:
    """Return the logarithms of predicted over measured times of cases by publication."""
    found: dict[str, list[float | None]] = {}
    for one in cases:
        wall = one.errors(values)[0]
        error = None if wall is None else math.log1p(wall.error)
        found.setdefault(one.point.repository, []).append(error)
    return found


def _median(logarithms: Collection[float | None]) -> float:
    return median(abs(math.expm1(e)) for e in logarithms if e is not None)


def fitted_again(
    arch: str, cases: Sequence[FitCase], mechanisms: Sequence[Mechanism]
) -> dict[str, dict[str, float]]:
    """Return medians by publication after steps of the fit from what ships.

    By the name of the mechanism that is left out; with an empty name, with all of them.
    """
    start, chip = STARTS[arch], cases[0].case.chip
    with Cases(cases) as timed:
        fit = Fit(start, timed, DOCUMENTED)
        every = fit.weights >= 0
        at = fit.point({name: shipped_value(chip, name) for name in start}, every)
        slopes = fit.derivatives(at)
        values = fit.descended(at, slopes, every).values
    found = {"": _medians(cases, values)}
    for mechanism in mechanisms:
        without = without_mechanism(cases, mechanism)
        names = [n for n in start if n.partition(".")[0] not in mechanism.constants]
        columns: Vector = slopes[:, [fit.names.index(name) for name in names]]
        with Cases(without) as timed:
            again = Fit({name: start[name] for name in names}, timed, DOCUMENTED)
            at = again.point({name: values[name] for name in names}, every)
            best = again.descended(at, columns, every).values
        found[mechanism.name] = _medians(without, best)
    return found


def _medians(cases: Sequence[FitCase], values: Mapping[str, float]) -> dict[str, float]:
    return {source: _median(each) for source, each in errors(cases, values).items()}


def page() -> str:
    """Return docs/mechanisms.md."""
    from cubecore.chips import chip

    found: dict[str, list[Effect]] = {}
    for row in json.loads(FILE.read_text("utf-8")):
        found.setdefault(row[0], []).append(Effect(*row))
    chips = {"2201": chip("Ascend910B1"), "3510": chip("Ascend950PR_9589")}
    lines = [
        "# The timing model's mechanisms",
        "",
        "Made from what `python -m tools.calibration.mechanisms` finds: every case of the fits is",
        "timed without each mechanism in turn, its constants set to nothing, all others as",
        "they are. A case identifies a mechanism if its time changes by more than 1 % without it.",
        "Errors are medians of absolute errors of a publication; those where no case changes are",
        "not listed.",
        "Where a publication would be better by more than 1 % without a mechanism, the other",
        "constants may only have followed it: they are fitted again without it, and once more with",
        "it in the same way, and these two errors stand beside.",
        "",
        *_verdict(found),
    ]
    for mechanism in MECHANISMS:
        lines += [
            "",
            f"## {mechanism.name[0].upper()}{mechanism.name[1:]}",
            "",
            f"{mechanism.formula[0].upper()}{mechanism.formula[1:]}.",
            "",
        ]
        lines += ["| constant | A2 | 950 | source |", "|---|---|---|---|"]
        for name in mechanism.constants:
            values = [_value(getattr(one, name)) for one in chips.values()]
            sources = dict.fromkeys(_source(one, name) for one in chips.values())
            lines.append(
                f"| `{name}` | {' | '.join(values)} | {'; '.join(s for s in sources if s)} |"
            )
        rows = [row for row in found.get(mechanism.name, []) if row.cases]
        lines += [
            "",
            "| architecture and publication | cases that change | error with it | without "
            "| fitted again with it | without |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {row.arch} {row.source} | {row.cases} of {row.of} "
            f"| {row.before:.1%} | {row.after:.1%} "
            f"| {_share(row.fitted_with)} | {_share(row.fitted_without)} |"
            for row in rows
        ]
        worse = [row for row in rows if row.hurts]
        if worse:
            need = [row for row in rows if row.helps]
            stays = f"It stays for {_names(need)}." if need else "It is rough: none needs it."
            lines += ["", f"Better by more than 1 % without it: {_names(worse)}. {stays}"]
    return "\n".join(lines) + "\n"


def _verdict(found: Mapping[str, Sequence[Effect]]) -> list[str]:
    """Return the lines that say which mechanisms hurt a publication."""
    hurting = [name for name, rows in found.items() if any(r.hurts for r in rows if r.cases)]
    if not hurting:
        return [
            "No mechanism is left without which a publication would be better by more than 1 %."
        ]
    return [f"Without these a publication would be better by more than 1 %: {', '.join(hurting)}."]


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _names(rows: Sequence[Effect]) -> str:
    return ", ".join(f"{row.arch} {row.source}" for row in rows)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one:g}" for name, one in value.items())
    return "-" if value is None else f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"


def _source(chip: Chip, name: str) -> str:
    """Return how sure a constant is, and its source."""
    fact = chip.sources.get(name)
    if fact is None:
        return ""
    text = "fitted" if fact.source.startswith("python -m tools.calibration.refit") else fact.source
    return f"{fact.reliability}: {text}" + (f" ({fact.note})" if fact.note else "")


def main(arguments: list[str]) -> None:
    """Write what leaving out each mechanism does on the architectures named, or on all."""
    archs = [arch for arch in STARTS if arch in arguments or not arguments]
    kept = [row for row in json.loads(FILE.read_text("utf-8")) if row[1] not in archs]
    made = [
        [round(each, 4) if isinstance(each, float) else each for each in astuple(effect)]
        for effect in effects(archs)
    ]
    text = ",\n".join(json.dumps(row) for row in sorted(kept + made, key=lambda row: row[1]))
    FILE.write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
