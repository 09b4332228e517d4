"""Two saved results of a kind made into a comparison: the sentence, and the figures of both."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from cubecore.answers.compare.figures import difference_of, faster, figure_rows, verdict
from cubecore.answers.compare.saved import SavedComparison
from cubecore.answers.compare.saved_json import MODEL, RUN, TIME, time_of
from cubecore.presented.text import duration, number
from cubecore.tiling.model.tcubetiling import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cubecore.answers.compare.saved_json import Saved

_GIB = 2**30


def compared(kind: str, names: Sequence[str], pair: Sequence[Saved]) -> SavedComparison:
    """Return the comparison of two saved results of a kind.

    Raises
    ------
    RequestError
        If a value of theirs is not what such a result has.
    """
    return {TIME: _times, RUN: _runs, MODEL: _steps}[kind](names, pair)


def _times(names: Sequence[str], pair: Sequence[Saved]) -> SavedComparison:
    first, second = times = [time_of(saved) for saved in pair]
    figures = [one.figures for one in times]
    rows: list[Sequence[str]] = list(figure_rows(*figures))
    if first.launches > 1 or second.launches > 1:
        rows.append(("launches, of which the longest", *(str(one.launches) for one in times), ""))
    rows += _tiling_rows(pair)
    ratio = figures[1].us / figures[0].us if figures[0].us else None
    subjects = [one.subject for one in times]
    return SavedComparison(TIME, names, subjects, verdict(names, figures), rows, ratio)


def _tiling_rows(pair: Sequence[Saved]) -> Iterator[Sequence[str]]:
    """Yield the fields of the tilings that differ, where both have one."""
    if not all(saved.has_tiling for saved in pair):
        return
    tilings = [saved.inside("tiling") for saved in pair]
    for name in FIELDS:
        if all(tiling.has(name) for tiling in tilings):
            values = [tiling.whole(name) for tiling in tilings]
            if values[0] != values[1]:
                yield (name, *map(str, values), f"{values[1] - values[0]:+,}")


def _runs(names: Sequence[str], pair: Sequence[Saved]) -> SavedComparison:
    outcomes = [_outcome(saved) for saved in pair]
    found = [Counter(finding.text("id") for finding in saved.objects("findings")) for saved in pair]
    if outcomes[0] == outcomes[1]:
        sentence = f"{names[0]} and {names[1]}: both {outcomes[0]}"
    else:
        sentence = "; ".join(
            f"{name}: {outcome}" for name, outcome in zip(names, outcomes, strict=True)
        )
    for name, mine, other in zip(names, found, reversed(found), strict=True):
        if alone := sorted(mine - other):
            sentence += f"; only {name} has {', '.join(alone)}"
    rows: list[Sequence[str]] = [("outcome", *outcomes, "")]
    for each in sorted(found[0] | found[1]):
        counts = [counter[each] for counter in found]
        rows.append((each, *map(str, counts), difference_of(*counts)))
    issued = [saved.whole("issued") for saved in pair]
    rows.append(("instructions", *(f"{count:,}" for count in issued), difference_of(*issued)))
    worst = "worst_error_over_tolerance"
    if all(saved.has(worst) for saved in pair):
        errors = [saved.number(worst) for saved in pair]
        rows.append(("error over tolerance", *map(number, errors), difference_of(*errors)))
    return SavedComparison(RUN, names, [_ran(saved) for saved in pair], sentence, rows, None)


def _ran(saved: Saved) -> str:
    if saved.has("script"):
        return saved.text("script")
    if saved.has("problem"):
        problem = saved.inside("problem")
        return " x ".join(f"{problem.whole(name)}" for name in ("m", "n", "k"))
    return saved.inside("operator").text("op") if saved.has("operator") else saved.text("kernel")


def _outcome(saved: Saved) -> str:
    if saved.has("verdict"):
        return saved.text("verdict")
    return "verified" if saved.flag("verified") else "not verified"


def _steps(names: Sequence[str], pair: Sequence[Saved]) -> SavedComparison:
    wholes = [next(saved.objects("whole")) for saved in pair]
    parts = [
        {part.text("part"): part.number("us") for part in whole.objects("parts")}
        for whole in wholes
    ]
    rows: list[Sequence[str]] = []
    times = [whole.number("us") if whole.has("us") else None for whole in wholes]
    ends = ["no total" if us is None else duration(us) for us in times]
    rows.append(("step, fused", *ends, difference_of(*times)))
    for name in dict.fromkeys([*parts[0], *parts[1]]):
        us = [of.get(name, 0.0) for of in parts]
        shown = (duration(each) if each else "-" for each in us)
        rows.append((name, *shown, difference_of(*us)))
    memories = [saved.inside("memory") for saved in pair]
    for key, name in (("weight_bytes", "weights of a card"), ("cache_bytes", "cache of a card")):
        if all(memory.has(key) for memory in memories):
            sizes = [memory.number(key) for memory in memories]
            shown = (f"{number(size / _GIB)} GiB" for size in sizes)
            rows.append((name, *shown, difference_of(*sizes)))
    subjects = [_step_of(saved) for saved in pair]
    first, second = times
    if first is None or second is None:
        lacking = [name for name, us in zip(names, times, strict=True) if us is None]
        sentence = f"{' and '.join(lacking)} without a total: not every part has a time"
        return SavedComparison(MODEL, names, subjects, sentence, rows, None)
    sentence = faster(names, [first, second], _longest(parts, in_order=first < second))
    return SavedComparison(
        MODEL, names, subjects, sentence, rows, second / first if first else None
    )


def _longest(parts: Sequence[dict[str, float]], *, in_order: bool) -> str:
    """Return the part whose time differs most, the faster step's first."""
    fast, slow = parts if in_order else (parts[1], parts[0])
    most = max(slow, key=lambda name: slow[name] - fast.get(name, 0.0), default=None)
    if most is None:
        return ""
    return f"its {most} takes {duration(fast.get(most, 0.0))} against {duration(slow[most])}"


def _step_of(saved: Saved) -> str:
    step, model = saved.inside("step"), saved.inside("model")
    seq = f" x {step.whole('seq')}" if step.has("seq") else ""
    about = f"{step.text('phase')} {step.whole('batch')}{seq}, tp {step.whole('tp')}"
    return f"{model.text('family')}, {about}, {saved.text('dtype')}, {saved.text('chip')}"
