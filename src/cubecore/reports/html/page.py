"""The report: one self-contained HTML page about a timed product, or a launch of one's own kernel.

Everything that varies goes into the page as one JSON object, which its own script puts into the
DOM as text; names from files can therefore not become markup.
"""

import json
from collections.abc import Sequence

from markupsafe import Markup

from cubecore.aliases import Json
from cubecore.chips.model import Chip
from cubecore.machine.sanitizer.findings import KINDS
from cubecore.manual import address
from cubecore.reports.html.charts.kernel_roofline import kernel_roofline
from cubecore.reports.html.charts.occupancy import occupancy
from cubecore.reports.html.charts.roofline import roofline
from cubecore.reports.html.core_map import core_map
from cubecore.reports.html.facts import facts_used
from cubecore.reports.html.lanes import PIPE_ORDER, LaneGroup, groups, line_of, signals
from cubecore.reports.html.slack import slack
from cubecore.reports.html.source import source_panel
from cubecore.reports.html.templates import rendered
from cubecore.reports.html.why import models, tiling_rows
from cubecore.reports.text.answers import interval_line, problem_line
from cubecore.tiling.model.core_grid import problem_blocks
from cubecore.tiling.rules.model import RuleCase
from cubecore.timing.records import Segment, Timeline
from cubecore.units import ceil_div
from cubecore.version import __version__
from cubecore.workflows.advice.kernel_rules.advise import rules
from cubecore.workflows.scripts.script import TimedLaunch
from cubecore.workflows.time import Timed

SHOWN_INSTRUCTIONS = 5000
"""Instructions of each group of cores that the page's timeline holds."""
SHOWN_GROUPS = 12
_SCRIPTS = ("dom.js", "panels.js", "source.js", "roofline.js", "map.js", "timeline.js", "main.js")
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_ASSUMPTIONS = (
    "Cores that run the same tree march in step; requests to L2 and device memory are served in "
    "the order of time, and a block touched before survives in L2 with a probability that falls "
    "with the bytes brought in since.",
    "Stores never wait, and start-up and launch are constants; every constant is below with its "
    "source and how sure it is.",
)


def html_report(timed: Timed, *, tiling_from: str = "", limit: int = SHOWN_INSTRUCTIONS) -> str:
    """Return the page; the timeline shows the first `limit` recorded instructions of each group.

    `tiling_from` names the file of the tiling; empty for the plan's own.
    """
    return page(problem_line(timed.request), page_data(timed, tiling_from, limit))


def launch_report(
    launch: TimedLaunch, among: Sequence[TimedLaunch] = (), *, limit: int = SHOWN_INSTRUCTIONS
) -> str:
    """Return the page about a launch of a user's kernel: what holds of any kernel, and findings.

    Where it is one `among` several of its script, they are listed.
    """
    chip, line = launch.run.chip, launch.timeline
    data = common_data(launch.title, chip, line, limit)
    likely = launch.interval
    data["likely"] = launch.rough or ("" if likely is None else interval_line(likely))
    findings = [
        finding.to_json()
        | {"remedy": KINDS[finding.id].remedy, "link": address("finding", finding.id)}
        for finding in launch.run.findings
    ]
    data |= {"findings": findings}
    roof = kernel_roofline(launch.run.traces, chip, line)
    if roof is not None:
        data["roofline"] = roof
    if launch.timeline.lines:
        data["source"] = source_panel(launch)
    if launch.changes is not None:
        data |= launch.changes.to_json()
        remedies = {name: rule.remedy for name, rule in rules().items()}
        data["advice"] = [
            each.to_json() | {"remedy": remedies[each.rule]} for each in launch.advice or ()
        ]
    if len(among) > 1:
        data["launches"] = [_launch_row(other, shown=other is launch) for other in among]
    return page(launch.title, data)


def _launch_row(launch: TimedLaunch, *, shown: bool) -> Json:
    line = launch.timeline
    return {
        "title": launch.title,
        "us": line.us,
        "cycles": line.cycles,
        "limited_by": line.limited_by,
        "findings": len(launch.run.findings),
        "shown": shown,
    }


def page(title: str, data: Json) -> str:
    """Return the page that shows `data`; panels whose data is missing are left out."""
    return rendered(
        "report.html", title=title, styles=("report.css",), scripts=_SCRIPTS, data=embed(data)
    )


def embed(data: object) -> Markup:
    """Return `data` as JSON that is safe inside a script element: nothing in it can end one."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(_ESCAPES))  # noqa: S704 - escaped in the line itself


def page_data(timed: Timed, tiling_from: str, limit: int) -> Json:
    """Return everything that the page shows, as one JSON object."""
    problem, chip, line = timed.request.problem, timed.request.chip, timed.timeline
    case = RuleCase(timed.tiling, problem, chip)
    changes = {} if timed.changes is None else timed.changes.to_json()
    depth = min(timed.tiling.singleCoreK, problem.shared_k)
    steps = {"steps": ceil_div(depth, timed.tiling.baseK)}
    return common_data(problem_line(timed.request), chip, line, limit) | {
        **changes,
        **steps,
        "likely": interval_line(timed.interval),
        "tiling": {
            "from": tiling_from,
            "rows": tiling_rows(case),
            "fields": timed.tiling.to_json(),
            "launch": problem.launch,
            "template": problem.template,
        },
        "models": models(timed),
        "reasons": [reason.to_json() for reason in timed.reasons],
        "rules": slack(case),
        "buffers": occupancy(case),
        "roofline": roofline(problem, chip, line),
        "map": core_map(
            problem_blocks(timed.request.problem, timed.request.chip, timed.tiling),
            [group.cores for group in line.groups],
        ),
    }


def common_data(title: str, chip: Chip, line: Timeline, limit: int) -> Json:
    """Return what the page shows of any kernel; a panel whose data is missing is left out."""
    return {
        "version": __version__,
        "problem": title,
        "answer": {
            "us": line.us,
            "cycles": line.cycles,
            "tflops": line.tflops,
            "utilisation": line.utilisation,
            "limited_by": line.limited_by,
            "issued": line.issued,
            "simulated": line.simulated_fraction,
            "read": line.read_bytes,
            "hbm_read": line.hbm_read_bytes,
            "written": line.written_bytes,
        },
        "chip": {
            "name": chip.name,
            "arch": chip.arch,
            "aic": chip.aic_count,
            "mhz": None if chip.frequency_hz is None else chip.frequency_hz / 1e6,
            "l2": chip.l2_bytes,
            "tbps": None if chip.hbm_bytes_per_second is None else chip.hbm_bytes_per_second / 1e12,
            "what_if": [n for n, f in chip.sources.items() if f.reliability == "WHAT-IF"],
        },
        "timeline": timeline_data(line, chip, limit),
        "stalls": [stall.to_json() for stall in line.stalls],
        "links": [link.to_json() for link in line.links],
        **({} if line.critical is None else {"critical": line.critical.to_json()}),
        "facts": facts_used(chip),
        "assumptions": _ASSUMPTIONS,
    }


def timeline_data(line: Timeline, chip: Chip, limit: int) -> Json:
    """Return what the page's timeline draws."""
    shown = groups(line, limit)
    return {
        "cycles_per_us": line.cycles / line.us,
        "launch": chip.launch_cycles or 0,
        "start": chip.start_cycles or 0,
        "end": _end(line),
        "limit": limit,
        "pipes": PIPE_ORDER,
        "groups": [_group(group) for group in shown[:SHOWN_GROUPS]],
        "left_out": max(len(shown) - SHOWN_GROUPS, 0),
    }


def _end(line: Timeline) -> int:
    return max((group.end_cycles for group in line.groups), default=0)


def _group(group: LaneGroup) -> Json:
    """Return a group with its instructions as differences: starts from start to start."""
    path = group.time.path
    steps: dict[str, list[int]] = {}
    for step in () if path is None else path.steps:
        if step.number is not None:
            steps.setdefault(step.pipe, []).append(step.number)
    lanes = [
        _lane(lane.pipe, lane.pipe, lane.segments, lane.names)
        | {
            "busy": lane.busy_cycles,
            "complete": lane.complete,
            "started": lane.started,
            "critical": [n for n in steps.get(lane.pipe, ()) if n < len(lane.segments)],
        }
        for lane in group.lanes
    ]
    return {
        "label": group.label,
        "cores": len(group.time.cores),
        "end": group.time.end_cycles,
        "scalar": group.time.busy_cycles.get("S", 0),
        "shown": group.shown,
        "complete": group.complete,
        "recorded_end": group.recorded_end,
        "lanes": lanes,
        "aside": [_lane(lane.pipe, lane.label, lane.segments) for lane in group.aside],
        "signals": [[*s.raised, *s.waited] for s in signals(group)],
    }


def _lane(
    pipe: str, label: str, segments: Sequence[Segment], called: Sequence[str] | None = None
) -> Json:
    """Return a lane; its segments have their own names unless they are `called` otherwise."""
    called = [segment.name for segment in segments] if called is None else called
    names = list(dict.fromkeys(called))
    causes = list(dict.fromkeys(segment.cause for segment in segments))
    places = [line_of(segment) for segment in segments]
    number_of = {place: number for number, place in enumerate(dict.fromkeys(places))}
    of_lines = {"lines": list(number_of), "line": [number_of[place] for place in places]}
    index_of = {name: number for number, name in enumerate(names)}
    starts = [segment.start for segment in segments]
    return {
        "pipe": pipe,
        "label": label,
        "names": names,
        "kind": [index_of[name] for name in called],
        "causes": causes,
        "cause": [causes.index(segment.cause) for segment in segments],
        "start": [b - a for a, b in zip([0, *starts], starts, strict=False)],
        "length": [segment.end - segment.start for segment in segments],
        **(of_lines if any(places) else {}),
    }
