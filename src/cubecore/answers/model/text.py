"""A step of a language model as lines: what it takes, its memory, its matmuls and terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.advice.intervals import interval_range
from cubecore.answers.model.planned import extents_of, parts_of
from cubecore.models.products import BOTH
from cubecore.presented.text import duration, number, table
from cubecore.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cubecore.answers.model.planned import PlannedProduct, PlannedStep, Total

_GIGA, _GIB = 1e9, 2**30
_HEADS = ("matmul", "variant", "M x N x K", "each", "a step", "by")


def step_text(answer: PlannedStep) -> str:
    """Return the lines: the figures of serving, the matmuls by layer, the step by part."""
    lines = [answer.title, answer.subtitle, "", *serving_lines(answer)]
    for heading, rows in parts_of(answer):
        lines += ["", heading, *table([_HEADS, *map(_cells, rows)])]
    lines += ["", "Sums of matmuls alone", *table(totals_rows(answer))]
    missing = [row for row in answer.rows if row.us is None]
    if missing:
        lines += ["", f"Without a time, and in no sum: {plural(len(missing), 'matmul')}"]
        lines += table((row.product.name, row.error) for row in missing)
    if answer.terms:
        lines += ["", "Beside the matmuls", *table(terms_rows(answer))]
    lines += ["", "The step by part", *table(whole_rows(answer))]
    lines += ["", "Not counted", *(f"  {name}" for name in answer.not_counted)]
    lines += ["", "Assumed", *(f"  {sentence}" for sentence in answer.assumed)]
    return "\n".join(lines) + "\n"


def _cells(row: PlannedProduct) -> Sequence[str]:
    p = row.product
    variant = "" if len(p.variants) > 1 else p.variants[0]
    if row.us is None:
        return (p.name, variant, extents_of(row), "-", "-", "-")
    times = duration(row.us), duration(row.us * p.launches)
    return (p.name, variant, extents_of(row), *times, row.limited_by or "")


_TERM_HEADS = ("term", "of", "operator", "shape", "each", "a step")


def terms_rows(answer: PlannedStep) -> list[Sequence[str]]:
    """Return the operators and collectives of a step as rows, under a row of heads."""
    return [_TERM_HEADS, *(row.cells for row in answer.terms)] if answer.terms else []


def totals_rows(answer: PlannedStep) -> list[tuple[str, ...]]:
    """Return the sums as rows, fused beside split, under a row of heads."""
    rows: list[tuple[str, ...]] = [("", "fused", "split")]
    pairs: dict[str, list[Total]] = {}
    for total in answer.totals:
        pairs.setdefault(total.of, []).append(total)
    for of, pair in pairs.items():
        name = of if of in {"head", "step"} else f"one {of}"
        rows.append((name, *(duration(total.us) for total in pair)))
    weights = [f"{number(total.weight_bytes / _GIGA)} GB" for total in pairs["step"]]
    rows.append(("weights of a step", *weights))
    return rows


def serving_lines(answer: PlannedStep) -> list[str]:
    """Return what who serves the model asks first: the time, the throughput and the memory."""
    lines = [_verdict(answer, variant) for variant in BOTH]
    if lines[0] == lines[1].replace(BOTH[1], BOTH[0]):
        lines = lines[:1]
    sentences = (_longest(answer), _measured(answer), memory_line(answer))
    lines += [sentence for sentence in sentences if sentence]
    if (least := _least_line(answer)) is not None:
        lines.append(least)
    return [*lines, *answer.remarks]


def measure_of(answer: PlannedStep) -> str:
    """Return the name that serving gives to the time of a step."""
    return "TPOT" if answer.step.phase == "decode" else "TTFT"


def throughput(answer: PlannedStep, variant: str) -> str:
    """Return the tokens of a second; of several cards, also those of each."""
    rate, cards = answer.tokens_per_second(variant), answer.step.tp
    each = "" if rate is None or cards == 1 else f" ({number(rate / cards)} a card)"
    return f"{number(rate)} tokens/s{each}"


def _verdict(answer: PlannedStep, variant: str) -> str:
    us = answer.whole_us(variant)
    if us is None:
        counted = duration(answer.counted_us(variant))
        missing = "; ".join(answer.missing(variant))
        return f"No total, {variant}: {missing}. All else takes {counted}"
    likely = interval_range(answer.interval(variant))
    rate = throughput(answer, variant)
    left = f", without {', '.join(sorted(answer.without))}" if answer.without else ""
    return (
        f"{measure_of(answer)} {duration(us)} {variant}{left} ({likely} in 8 of 10 cases), {rate}"
    )


def _longest(answer: PlannedStep) -> str:
    """Return which part of a step takes longest and what bounds it."""
    parts = answer.parts(BOTH[0])
    longest = max(parts, key=lambda part: part.us, default=None)
    if longest is None or not longest.us:
        return ""
    share = longest.us / answer.counted_us(BOTH[0])
    name = f"{longest.name[0].upper()}{longest.name[1:]}"
    return f"{name} takes {share:.0%} of it, bounded by {bound_of(longest.limited_by)}"


def _measured(answer: PlannedStep) -> str:
    """Return what share of a step rests on kinds of kernels that were measured."""
    us, rest = answer.counted_us(BOTH[0]), answer.unmeasured(BOTH[0])
    if not us:
        return ""
    share = f"{1 - sum(rest.values()) / us:.0%} of it is of measured kinds of kernels"
    longest = sorted(rest, key=lambda name: -rest[name])[:_SHOWN]
    return f"{share}; no published time is of {', '.join(longest)}" if rest else share


_SHOWN = 4
"""Kinds of kernels without a measurement that are named, those that take longest."""


def memory_line(answer: PlannedStep) -> str:
    """Return what lies on one card beside what it has."""
    memory, step = answer.memory, answer.step
    text = f"Memory of a card: weights {_gib(memory.weights)}"
    if memory.cache is None:
        text += f", cache {number(memory.cache_token / 1024)} KiB a token (--seq gives the tokens)"
    else:
        text += f", cache {_gib(memory.cache)}"
    chip = answer.request.chip.name
    if memory.card is None:
        return f"{text}; no source gives the memory of {chip}, so the fit is not checked"
    text += f"; {chip} has {_gib(memory.card)} ({memory.source})"
    if step.seq is not None and memory.fits:
        most = plural(memory.sequences(step.seq), "sequence")
        text += f": {most} of {step.seq:,} tokens fit"
    return text


def _least_line(answer: PlannedStep) -> str | None:
    least, rate = answer.least_memory_us, answer.request.chip.hbm_bytes_per_second
    if least is None or rate is None:
        return None
    read = "weights and cache" if answer.step.phase == "decode" else "weights"
    share = least / answer.counted_us(BOTH[0])
    return (
        f"Device memory, {number(rate / 1e12)} TB/s, gives the {read} of a step in "
        f"{duration(least)}: {share:.0%} of that time"
    )


def _gib(size: int) -> str:
    return f"{number(size / _GIB)} GiB"


_BOUNDS = {
    "MTE2": "loads",
    "MTE1": "loads of L0",
    "M": "Cube",
    "V": "Vector",
    "FIX": "stores",
    "MTE3": "stores",
    "S": "scalar unit",
}
"""The work of a pipe, in a word."""


def bound_of(limited_by: str) -> str:
    """Return what limits a part, with its pipe in brackets."""
    word = _BOUNDS.get(limited_by.rpartition(" ")[2])
    return limited_by if word is None else f"{word} ({limited_by})"


def whole_rows(answer: PlannedStep) -> list[tuple[str, ...]]:
    """Return a step as rows: each part fused and split, its share and its bound, and the total."""
    fused, split = (answer.parts(variant) for variant in BOTH)
    counted = answer.counted_us(BOTH[0])
    rows: list[tuple[str, ...]] = [("", *BOTH, "share", "bound")]
    for part, apart in zip(fused, split, strict=True):
        times = [duration(p.us) + "+" * bool(p.missing) if p.us else "-" for p in (part, apart)]
        share = f"{part.us / counted:.0%}" if part.us else "-"
        rows.append((part.name, *times, share, bound_of(part.limited_by)))
    whole = [answer.whole_us(variant) for variant in BOTH]
    totals = ["no total" if us is None else duration(us) for us in whole]
    rows.append(("step", *totals, "", ""))
    if None in whole:
        return rows
    return [
        *rows,
        ("in 8 of 10 cases", *(interval_range(answer.interval(v)) for v in BOTH), "", ""),
    ]
