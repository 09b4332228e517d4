"""The tiling in words, and what three models say of it."""

from cubecore.aliases import Json
from cubecore.presented.text import duration
from cubecore.reports.html.lanes import PIPE_ORDER, PIPE_WORK
from cubecore.tiling.cost.closed_form import cost, predict
from cubecore.tiling.model.core_grid import batch_groups
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.rules.model import RuleCase
from cubecore.timing.records import Timeline
from cubecore.units import ceil_div, plural


def tiling_rows(case: RuleCase) -> list[Json]:
    """Return the fields that a kernel author sets, grouped, each group with what it means."""
    t: TCubeTiling = case.tiling
    groups = (
        (("usedCoreNum",), _cores(case)),
        (("singleCoreM", "singleCoreN", "singleCoreK"), "the block of C of one core, and its K"),
        (("baseM", "baseN", "baseK"), _base(t)),
        (("stepM", "stepKa", "stepN", "stepKb"), _steps(case)),
        (("depthA1", "depthB1"), _depths(t)),
        (("dbL0A", "dbL0B", "dbL0C"), "slots in L0A, L0B and L0C; 2 lets the pipes overlap"),
        (("iterateOrder",), "along N first" if t.iterateOrder == 1 else "along M first"),
        (("isBias",), "a bias row starts each tile" if t.isBias else "no bias"),
    )
    return [
        {"fields": [[name, getattr(t, name)] for name in names], "means": means}
        for names, means in groups
    ]


def _cores(case: RuleCase) -> str:
    t, limit = case.tiling, case.problem.core_limit(case.chip)
    rows, columns = ceil_div(t.M, t.singleCoreM), ceil_div(t.N, t.singleCoreN)
    slices = ceil_div(t.Ka, t.singleCoreK)
    text = f"of {limit}: {rows} x {plural(columns, 'block')} of C"
    text += f", K in {slices} slices" if slices > 1 else ""
    groups = batch_groups(case.problem, case.chip, t.usedCoreNum)
    return f"{text}; {groups} such groups of cores share the batch" if groups > 1 else text


def _base(t: TCubeTiling) -> str:
    m, n = min(t.singleCoreM, t.M), min(t.singleCoreN, t.N)
    tiles = ceil_div(m, t.baseM) * ceil_div(n, t.baseN)
    steps = ceil_div(t.singleCoreK, t.baseK)
    return f"one Mmad; {plural(tiles, 'tile')} a core, {plural(steps, 'step')} over K each"


def _steps(case: RuleCase) -> str:
    t = case.tiling
    if case.problem.template != "MDL":
        a, b = (
            "stays in L1" if ceil_div(t.singleCoreK, t.baseK) <= step else "is loaded anew"
            for step in (t.stepKa, t.stepKb)
        )
        return f"one load of MTE2 brings a base block; all of K of A {a}, of B {b}"
    m, n = min(t.stepM * t.baseM, t.singleCoreM, t.M), min(t.stepN * t.baseN, t.singleCoreN, t.N)
    ka, kb = min(t.stepKa * t.baseK, t.singleCoreK), min(t.stepKb * t.baseK, t.singleCoreK)
    return f"one load of MTE2 brings {m} x {ka} of A, or {kb} x {n} of B"


def _depths(t: TCubeTiling) -> str:
    a = t.depthA1 // max(t.stepM * t.stepKa, 1)
    b = t.depthB1 // max(t.stepN * t.stepKb, 1)
    return f"base blocks in L1: {plural(a, 'chunk')} of A, {plural(b, 'chunk')} of B"


def moved_in_core(case: RuleCase) -> Json:
    """Return the bytes that the fullest core moves, by link, of the closed form."""
    moved: Json = predict(case.tiling, case.problem, case.chip).to_json()["bytes"]
    return moved


def models(case: RuleCase, line: Timeline, lower_bound: int, still: int) -> Json:
    """Return the lower bound, the closed form and the event timing, and pipes by the last two.

    The closed form counts the fullest core, the event timing averages over the cores; `still` are
    the cycles of launch and start.
    """
    chip = case.chip
    predicted = predict(case.tiling, case.problem, chip)
    closed = cost(case.tiling, case.problem, chip)
    estimates = [
        ("lower bound", lower_bound, "no tiling can be under it in this model"),
        ("closed form", predicted.cycles, f"what the planner ranks by; {predicted.limited_by}"),
        ("event timing", line.cycles, f"what this page shows; {line.limited_by}"),
    ]
    names = [name for name in PIPE_ORDER if predicted.pipes.get(name) or line.pipes.get(name)]
    pipes = [
        {
            "name": name,
            "work": PIPE_WORK.get(name, ""),
            "closed": predicted.pipes.get(name),
            "event": line.pipes.get(name),
        }
        for name in names
    ]
    shared = {"name": "HBM", "work": "memory, all cores", "event": None}
    pipes.append({**shared, "closed": int(closed.hbm)})
    start = {"name": "start-up", "work": "launch and start", "event": None}
    pipes.append({**start, "closed": int(closed.start)})
    return {
        "estimates": [
            {"name": name, "us": chip.microseconds(cycles), "cycles": cycles, "note": note}
            for name, cycles, note in estimates
        ],
        "pipes": pipes,
        "cycles": line.cycles,
        "verdict": _verdict(line, predicted.cycles, lower_bound, still),
    }


def launch_verdict(line: Timeline) -> str:
    """Return what sets the time of any launch: its busiest pipe, and what that waits for most.

    The scalar unit's own cycles hold start-up and waits.
    """
    pipes = {name: busy for name, busy in line.pipes.items() if name.rpartition(" ")[2] != "S"}
    text = f"{duration(line.us)}, set by {line.limited_by}."
    busiest = max(pipes, key=lambda name: pipes[name], default=None)
    if busiest is None or not pipes[busiest]:
        return text
    return f"{text} {_busiest(line, busiest)}"


def _busiest(line: Timeline, pipe: str) -> str:
    """Return the share of a pipe's work, and its longest wait."""
    text = f"{pipe} is the busiest pipe, with {line.pipes[pipe] / line.cycles:.1%} of the run"
    worst = next((stall for stall in line.stalls if stall.pipe == pipe), None)
    if worst is None:
        return f"{text}."
    part = worst.cycles / line.cycles
    return f"{text}; what it waits for most is {worst.reason}, {part:.1%}."


def _verdict(line: Timeline, predicted: int, least: int, still: int) -> str:
    gap = f"{line.cycles / least:.2f} times the lower bound" if least else ""
    off = f"{line.cycles / predicted:.2f} times the closed form" if predicted else ""
    texts = [f"{duration(line.us)} is {gap} and {off}."]
    texts.append(f"Launch and start take {still / line.cycles:.1%} of it.")
    if 2 * still >= line.cycles:
        return " ".join(texts)
    busiest = max(line.pipes, key=lambda name: line.pipes[name])
    return " ".join([*texts, _busiest(line, busiest)])
