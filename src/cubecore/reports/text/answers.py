"""Answers as text: plain lines, the same on a terminal, in a pipe and in the documentation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cubecore.manual import address_lines
from cubecore.units import plural

if TYPE_CHECKING:  # a verb loads the records that it shows, and no other verb's
    from collections.abc import Iterable, Sequence

    from cubecore.tiling.model.core_grid import CoreBlock
    from cubecore.tiling.model.tcubetiling import TCubeTiling
    from cubecore.timing.records import CriticalPath, Link, Timeline
    from cubecore.workflows.advice.reasons import Reason
    from cubecore.workflows.advice.timed_changes import TimedChange, TimedChanges
    from cubecore.workflows.calibration.intervals import Interval
    from cubecore.workflows.chips import ChipSheet
    from cubecore.workflows.compare import ComparedTiling, Comparison
    from cubecore.workflows.plan import TilingPlan
    from cubecore.workflows.request import TilingRequest
    from cubecore.workflows.run import Run
    from cubecore.workflows.time import Timed

_SHOWN_STALLS = 5
_LEAST_GAIN = 0.0005
"""Share of the time below which a change saves nothing that a tenth of a percent would show."""
_FIGURE = re.compile(r"[\d,.]+( us| ms| s| MB| kB| GB/s|%|\.\.)?")
"""A cell that stands to the right of its column."""
_MAP_LIMIT = 16


def table(rows: Iterable[Sequence[object]], indent: str = "  ") -> list[str]:
    """Return rows as lines with aligned columns, numbers to the right."""
    cells = [[("" if c is None else str(c)) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))] if cells else []
    lines = []
    for row in cells:
        parts = [
            c.rjust(w) if _FIGURE.fullmatch(c) else c.ljust(w)
            for c, w in zip(row, widths, strict=True)
        ]
        lines.append((indent + "  ".join(parts)).rstrip())
    return lines


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with `digits` significant digits; ``unknown`` for None."""
    if value is None:
        return "unknown"
    if value == 0 or abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def duration(us: float | None) -> str:
    """Return a time of so many microseconds in the unit that fits: us, ms or s."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us is not None and us >= size:
            return f"{number(us / size)} {unit}"
    return f"{number(us)} us"


def problem_line(request: TilingRequest) -> str:
    """Return the problem in one line."""
    p = request.problem
    a = f"A[{p.k}x{p.m}]^T" if p.trans_a else f"A[{p.m}x{p.k}]"
    kb = p.kb or p.k
    b = f"B[{p.n}x{kb}]^T" if p.trans_b else f"B[{kb}x{p.n}]"
    kinds = []
    for x, kind in (("a", p.a), ("b", p.b), ("c", p.c)):
        stored = " NZ" if getattr(p, f"format_{x}") == "NZ" else ""
        position = getattr(p, f"pos_{x}")
        kinds.append(kind + stored + ("" if position == "GM" else f" in {position}"))
    bias = f" + bias {p.bias}" if p.bias else ""
    options = {
        "relu": p.epilogue.relu,
        str(p.epilogue.quant): p.epilogue.quant is not None,
        "HF32": p.hf32,
        "MX scales": p.mx,
        f"{p.batch} matrices": p.batch > 1,
        f"layout {p.layout}": p.layout is not None,
        "K may be split": p.split_k,
        p.template: p.template != "MDL",
        "mix": p.launch == "mix",
    }
    named = "".join(f", {name}" for name, given in options.items() if given)
    product = f"C[{p.m}x{p.n}] {kinds[2]} = {a} {kinds[0]} x {b} {kinds[1]}{bias}"
    return f"{product}{named} on {request.chip.name}"


_SELDOM = (
    ("transLength",),
    ("mxTypePara",),
    ("BatchNum",),
    *(tuple(f"{x}LayoutInfo{axis}" for axis in "BSNGD") for x in "AB"),
    tuple(f"CLayoutInfo{axis}" for axis in ("B", "S1", "N", "G", "S2")),
)
"""Fields that are shown where one of their line is not 0."""


def tiling_lines(tiling: TCubeTiling) -> list[str]:
    """Return the fields that a kernel author sets, grouped."""
    groups = (
        ("usedCoreNum", "singleCoreM", "singleCoreN", "singleCoreK"),
        ("baseM", "baseN", "baseK", "iterateOrder"),
        ("stepM", "stepN", "stepKa", "stepKb"),
        ("depthA1", "depthB1", "dbL0A", "dbL0B"),
        ("dbL0C", "isBias"),
        *_SELDOM,
    )
    named = [g for g in groups if g not in _SELDOM or any(getattr(tiling, n) for n in g)]
    return ["  " + "  ".join(f"{n} {getattr(tiling, n):<7}" for n in g).rstrip() for g in named]


def _capped(request: TilingRequest) -> list[str]:
    """Return the line about cores that were asked for and that the chip does not have."""
    asked, most = request.problem.cores, request.problem.core_limit(request.chip)
    if asked is None or asked <= most:
        return []
    return [f"{asked} cores were asked for; {request.chip.name} has {most}"]


def plan_text(plan: TilingPlan) -> str:
    """Return a plan as text."""
    p = plan.predicted
    lines = [problem_line(plan.request), "", "Tiling", *tiling_lines(plan.tiling), ""]
    lines[-1:] = [*_capped(plan.request), ""]
    bound = f"{plan.gap:.2f} times what no tiling can beat"
    if plan.lower_bound_us is not None:
        bound = f"no tiling can be under {duration(plan.lower_bound_us)} ({plan.gap:.2f} times)"
    lines.append(f"Predicted {_duration(p.us, p.cycles)}, limited by {p.limited_by}; {bound}")
    if plan.interval is not None:
        lines.append(interval_line(plan.interval))
    lines.append(_proven(plan))
    if p.not_modelled:
        lines.append(
            f"This leaves out {plural(len(p.not_modelled), 'cost')} that no source gives for this "
            f"chip: cubecore chips {plan.request.chip.name} names them"
        )
    lines += [f"Advice {advice.id}: {advice.message}" for advice in plan.advice]
    if reasons := plan.reasons:
        lines += ["", *reasons_lines(reasons, p.cycles)]
    if others := plan.beside:
        lines += ["", "Faster beside what was asked for"]
        for one in others:
            lines += [f"  {number(one.us)} us, {one.saves:.0%} less: {one.what}"]
            lines += [f"    {one.command}"]
    head = ("", "us", "cores", "singleCore M x N", "base M x N x K", "by")
    rows: list[Sequence[Any]] = [head]
    for index, ranked in enumerate(plan.alternatives, 1):
        t = ranked.tiling
        rows.append(
            (
                index + 1,
                number(ranked.predicted.us),
                t.usedCoreNum,
                f"{t.singleCoreM} x {t.singleCoreN}",
                f"{t.baseM} x {t.baseN} x {t.baseK}",
                ranked.predicted.limited_by,
            )
        )
    if plan.alternatives:
        lines += ["", f"Alternatives{_ties(plan)}", *table(rows)]
    lines += ["", "Cores", *core_map(plan.blocks)]
    return "\n".join(lines) + "\n"


def _ties(plan: TilingPlan) -> str:
    """Return how many alternatives are as fast within the model's error."""
    from cubecore.workflows.plan import TIED

    if not plan.ties:
        return ""
    first = "the first is" if plan.ties == 1 else f"the first {plan.ties} are"
    return f": {first} equal to it within the model's error, {TIED:.0%}"


def _proven(plan: TilingPlan) -> str:
    from cubecore.tiling.solver.branch_and_bound import COARSE

    bound, us = plan.search_bound_us, plan.predicted.us
    if plan.timed:
        among = f"Timed event by event, the fastest of {plural(plan.timed, 'tiling')}"
        return f"{among}: no tiling can be faster" if plan.proven else f"{among}; not proven"
    if plan.proven:
        return "Proven: lower bounds exclude every other tiling that the planner knows"
    if bound is None or us is None:
        return "Not proven to be the fastest that the planner knows"
    if not plan.complete and bound >= us:
        return "Not proven: nothing that was looked at is faster, but some values were left out"
    if plan.complete and bound >= (1 - COARSE) * us:
        return f"Proven to {COARSE:.1%}: no other tiling that the planner knows is faster by more"
    return f"Not proven: what was not looked at may take {duration(bound)}"


def _duration(us: float | None, cycles: int) -> str:
    return f"{cycles:,} cycles" if us is None else f"{duration(us)} ({cycles:,} cycles)"


def core_map(blocks: Sequence[CoreBlock]) -> list[str]:
    """Return which core computes which block of C, as a grid with M downwards.

    Several cores share a block where K is split, or compute it for different matrices of a batch.
    """
    rows = sorted({b.m0 for b in blocks})
    columns = sorted({b.n0 for b in blocks})
    if len(rows) > _MAP_LIMIT or len(columns) > _MAP_LIMIT:
        first, last = blocks[0], blocks[-1]
        return [
            f"  {plural(len(blocks), 'core')}: {len(rows)} x {len(columns)} blocks of "
            f"{first.m_len} x {first.n_len}, the last {last.m_len} x {last.n_len}"
        ]
    at: dict[tuple[int, int], str] = {}
    for block in blocks:
        corner = (block.m0, block.n0)
        at[corner] = f"{at[corner]},{block.core}" if corner in at else str(block.core)
    heads = ["rows \\ columns", *(f"{n0}.." for n0 in columns)]
    body = [[f"{m0}..", *(at.get((m0, n0), "") for n0 in columns)] for m0 in rows]
    return table([heads, *body])


def run_text(run: Run) -> str:
    """Return what an execution gave."""
    v, p = run.verification, run.request.problem
    verdict = "verified" if run.verified else "NOT verified"
    engine = run.engine if run.order == "program" else f"{run.order} order, {run.engine}"
    lines = [
        problem_line(run.request),
        f"{verdict}: largest error {v.max_abs_error:.3g}, tolerance {v.tolerance:.3g} "
        f"(worst element at {v.worst:.2f} of its own limit)",
        f"  policy  {run.policy}",
        f"  issued  {run.issued:,} instructions on {_users(run)} ({engine} engine)",
        f"  time    operands {run.operands_wall_s:.2f} s, execution {run.wall_s:.2f} s, "
        f"verification {run.verify_wall_s:.2f} s; in all {run.total_wall_s:.2f} s",
    ]
    if v.compared < (elements := p.batch * p.m * p.n):
        lines.append(
            f"  errors  of {v.compared:,} elements in float64, with those farthest from a float32 "
            f"product; it settles the other {elements - v.compared:,}"
        )
    if run.reference_wall_s is not None:
        lines.append(f"  NumPy   {run.reference_wall_s:.3g} s for the float32 product of the shape")
    if v.nan or v.infinite or v.nonfinite_differ:
        lines.append(
            f"  product {plural(v.nan, 'element')} NaN and {v.infinite} infinite; "
            f"{v.nonfinite_differ} differ"
        )
    lines += ["", f"Findings: {len(run.findings)}"] if run.findings else ["  findings none"]
    lines += [
        f"  {f.id}: {f.message} ({f.count} times; {f.core}, {f.location})" for f in run.findings
    ]
    lines += address_lines("finding", (f.id for f in run.findings))
    return "\n".join(lines) + "\n"


def _users(run: Run) -> str:
    """Return how many cores, or clients of cores, took part."""
    used = run.tiling.usedCoreNum
    return plural(used, "core" if run.request.problem.launch == "cube" else "AIV client")


def time_text(timed: Timed) -> str:
    """Return where the cycles go."""
    lines = [problem_line(timed.request), *timeline_lines(timed.timeline, timed.interval)]
    if timed.reasons:
        lines += ["", *reasons_lines(timed.reasons, timed.timeline.cycles)]
    if timed.changes is not None:
        lines += ["", *changes_lines(timed.changes)]
    return "\n".join(lines) + "\n"


def time_path_text(timed: Timed) -> str:
    """Return where the cycles go, and the critical path of the slowest cores."""
    path = timed.timeline.critical
    assert path is not None, "the critical path is asked for, and instructions were recorded"
    return "\n".join([time_text(timed), *_path_lines(path)]) + "\n"


def _size(count: float) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def interval_line(interval: Interval) -> str:
    """Return an interval in words: 34 to 45 us in 8 of 10 cases."""
    return f"{interval_range(interval)} in 8 of 10 measured cases like it"


def interval_range(interval: Interval) -> str:
    """Return both ends of an interval: 34 to 45 us."""
    low, high = (duration(us) for us in (interval.low_us, interval.high_us))
    if low.rpartition(" ")[2] == high.rpartition(" ")[2]:
        low = low.rpartition(" ")[0]
    return f"{low} to {high}"


def timeline_lines(timeline: Timeline, interval: Interval | None = None) -> list[str]:
    """Return a timeline's figures."""
    rate = "" if timeline.tflops is None else f", {number(timeline.tflops)} TFLOPS"
    used = timeline.utilisation
    share = "" if used is None else f" ({used:.{1 if used >= 0.01 else 2}%} of the chip)"
    lines = [
        f"{duration(timeline.us)} ({timeline.cycles:,} cycles), limited by "
        f"{timeline.limited_by}{rate}{share}",
        *([] if interval is None else [interval_line(interval)]),
        "",
        "Pipe busy, average over cores",
    ]
    rows = [
        (pipe, f"{busy:,}", f"{busy / timeline.cycles:.0%}")
        for pipe, busy in timeline.pipes.items()
        if busy
    ]
    lines += table(rows)
    if timeline.stalls:
        rows = [
            (s.pipe, f"{s.cycles:,}", f"waiting for {s.reason}")
            for s in timeline.stalls[:_SHOWN_STALLS]
        ]
        lines += ["", "Longest stalls, average cycles", *table(rows)]
    if timeline.links:
        lines += ["", "Links, over the run", *table([_link_row(link) for link in timeline.links])]
    served = timeline.hbm_read_bytes / timeline.read_bytes if timeline.read_bytes else 0
    lines += [
        "",
        f"Read {_size(timeline.read_bytes)}, {served:.0%} of it from device memory; "
        f"wrote {_size(timeline.written_bytes)}; {timeline.issued:,} instructions",
    ]
    return lines


def _link_row(link: Link) -> tuple[str, ...]:
    rate = f"{number(link.bytes_per_second / 1e9)} GB/s"
    share = "" if link.share is None else f"{link.share:.0%}"
    return (link.name, _size(link.bytes), rate, share)


def _path_lines(path: CriticalPath) -> list[str]:
    """Return where the cycles of a critical path lie, the longest part first."""
    whole = sum(path.cycles.values())
    parts = sorted(path.cycles.items(), key=lambda part: (-part[1], part[0]))
    rows = [(name, f"{cycles:,}", f"{cycles / whole:.0%}") for name, cycles in parts]
    part = "" if path.complete else " of the part that was recorded"
    return [f"Critical path{part}, cycles on", *table(rows)]


def reasons_lines(reasons: Sequence[Reason], cycles: int) -> list[str]:
    """Return why a product takes its cycles, with the share that is saved without each cause."""
    rows = []
    for one in reasons:
        share = "" if one.cycles is None else f"{one.cycles / cycles:.0%}"
        rough = " (rough: no measurement has a cost of this size)" if one.rough else ""
        rows.append((share, f"{one.cause}: {one.text}{rough}"))
    return ["Why, with the share that is saved without it", *table(rows)]


def changes_lines(changes: TimedChanges) -> list[str]:
    """Return what would help, the most helpful change first, and what was in vain or not tried.

    Changes of the chip come behind those that a user can make.
    """
    significant = [change for change in changes.tried if change.gain >= _LEAST_GAIN]
    of_program = [change for change in significant if change.of != "chip"]
    lines = ["What would help, each timed anew"]
    lines += _changes_table(of_program) if of_program else ["  nothing that was tried"]
    if len(of_program) < len(significant):
        wider = [change for change in significant if change.of == "chip"]
        lines += ["", "A chip that has more, each timed anew", *_changes_table(wider)]
    vain = [c for c in changes.tried if c.gain < _LEAST_GAIN]
    if vain:
        lines += ["", "No gain from", *table([(f"{c.kind}:", c.what) for c in vain])]
    if changes.untried:
        lines += ["", "Not tried", *table([(f"{u.kind}:", u.reason) for u in changes.untried])]
    return lines


def _changes_table(changes: Sequence[TimedChange]) -> list[str]:
    rows = [("saves", "then", "of", "change")]
    rows += [(f"{c.gain:.1%}", duration(c.us), c.of, f"{c.kind}: {c.what}") for c in changes]
    return table(rows)


def compare_text(comparison: Comparison) -> str:
    """Return two tilings side by side."""
    first, second = comparison.first, comparison.second
    rows: list[Sequence[Any]] = [("", "first", "second")]
    rows += [(name, *pair) for name, pair in comparison.differing.items()]
    if len(rows) == 1:
        rows.append(("(no field differs)", "", ""))
    rows.append(("legal", _yes(first.findings.legal), _yes(second.findings.legal)))
    for label, value in (("us", _us), ("in 8 of 10 cases", _likely), ("limited by", _limit)):
        rows.append((label, value(first), value(second)))
    lines = [problem_line(comparison.request), "", *table(rows)]
    if comparison.ratio is not None:
        lines += ["", f"The second takes {comparison.ratio:.3f} times the first."]
    for name, side in (("first", first), ("second", second)):
        lines += [f"{name}: {finding.message}" for finding in side.findings.findings]
    return "\n".join(lines) + "\n"


def _yes(legal: bool) -> str:
    return "yes" if legal else "no"


def _us(side: ComparedTiling) -> str:
    return "-" if side.timed is None else number(side.timed.timeline.us)


def _likely(side: ComparedTiling) -> str:
    return "-" if side.timed is None else interval_range(side.timed.interval)


def _limit(side: ComparedTiling) -> str:
    return "-" if side.timed is None else side.timed.timeline.limited_by


def chip_text(sheet: ChipSheet) -> str:
    """Return every fact of a chip with its source."""
    chip = sheet.chip
    lines = [f"{chip.name}: architecture {chip.arch}"]
    lines += [f"  also {', '.join(chip.products)}"] if chip.products else []
    facts = sheet.to_json()["facts"]
    known = {name: fact for name, fact in facts.items() if fact["value"] is not None}
    rows: list[Sequence[Any]] = []
    for name, fact in known.items():
        value = "by name" if isinstance(fact["value"], dict) else fact["value"]
        rows.append((name, value, fact["reliability"], fact["note"] or fact["source"]))
    lines.append("")
    for line, fact in zip(table(rows), known.values(), strict=True):
        lines.append(line)
        if isinstance(fact["value"], dict):
            lines.append("    " + ", ".join(f"{k} {v}" for k, v in fact["value"].items()))
    if unknown := [name for name in facts if name not in known]:
        lines += ["", f"Unknown: {', '.join(unknown)}"]
    return "\n".join(lines) + "\n"


def chips_text(sheets: Sequence[ChipSheet]) -> str:
    """Return the catalogue, one chip a line."""
    rows: list[Sequence[Any]] = [("SoC", "arch", "AIC", "AIV", "MHz", "L1 KiB", "also called")]
    for sheet in sheets:
        c = sheet.chip
        mhz = None if c.frequency_hz is None else c.frequency_hz // 1_000_000
        also = ", ".join(c.products[:3])
        rows.append((c.name, c.arch, c.aic_count, c.aiv_count, mhz, c.l1_bytes // 1024, also))
    return "\n".join(table(rows, "")) + "\n"
