"""The report: one self-contained HTML page about a timed kernel.

Everything that varies goes into the page as one JSON object, which its own script puts into the
DOM as text; names from files can therefore not become markup.
"""

import json
from collections.abc import Sequence

from markupsafe import Markup

from cubecore.aliases import Json
from cubecore.chips.model import Chip
from cubecore.reports.html.core_bars import core_bars
from cubecore.reports.html.facts import facts_used
from cubecore.reports.html.lanes import PIPE_ORDER, LaneGroup, groups, line_of, signals
from cubecore.reports.html.memory_diagram import memory_diagram
from cubecore.reports.html.templates import rendered
from cubecore.reports.html.why import launch_verdict
from cubecore.timing.records import Segment, Timeline
from cubecore.version import __version__

SHOWN_INSTRUCTIONS = 5000
"""Instructions of each group of cores that the page's timeline holds."""
SHOWN_GROUPS = 12
_PARTS = ("dom.js", "panels.js", "source.js", "roofline.js", "map.js", "timeline.js")
_SCRIPTS = (*_PARTS, "memory.js", "find.js", "main.js")
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_ASSUMPTIONS = (
    "Cores that run the same tree march in step; requests to L2 and device memory are served in "
    "the order of time, and a block touched before survives in L2 with a probability that falls "
    "with the bytes brought in since.",
    "Stores never wait, and start-up and launch are constants; every constant is below with its "
    "source and how sure it is.",
)


def page(title: str, data: Json) -> str:
    """Return the page that shows `data`; panels whose data is missing are left out."""
    return rendered(
        "report.html", title=title, styles=("report.css",), scripts=_SCRIPTS, data=embed(data)
    )


def embed(data: object) -> Markup:
    """Return `data` as JSON that is safe inside a script element: nothing in it can end one."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(_ESCAPES))  # noqa: S704 - escaped in the line itself


def common_data(title: str, chip: Chip, line: Timeline, limit: int | None = None) -> Json:
    """Return what the page shows of any kernel; the first `limit` instructions of each group."""
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
        "verdict": launch_verdict(line),
        "timeline": timeline_data(line, chip, limit),
        "stalls": [stall.to_json() for stall in line.stalls],
        "links": [link.to_json() for link in line.links],
        "memory": memory_diagram(line),
        "cores": core_bars(line, chip.start_cycles or 0),
        **({} if line.critical is None else {"critical": line.critical.to_json()}),
        "facts": facts_used(chip),
        "assumptions": _ASSUMPTIONS,
    }


def timeline_data(line: Timeline, chip: Chip, limit: int | None = None) -> Json:
    """Return what the page's timeline draws: of each group `limit` instructions."""
    limit = SHOWN_INSTRUCTIONS if limit is None else limit
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
    # The critical path names instructions by their number in the pipe; of a run that is shown in
    # part only those that are shown can be marked.
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
    beside = (*group.inside, *group.aside)
    return {
        "label": group.label,
        "cores": len(group.time.cores),
        "end": group.time.end_cycles,
        "scalar": group.time.busy_cycles.get("S", 0),
        "shown": group.shown,
        "complete": group.complete,
        "recorded_end": group.recorded_end,
        "lanes": lanes,
        "aside": [_lane(lane.pipe, lane.label, lane.segments) for lane in beside],
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
    # Names, causes and lines repeat thousands of times: each is in the page once, and instructions
    # have its number. Starts are differences, which are short in text.
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
