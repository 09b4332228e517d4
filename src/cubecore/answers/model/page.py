"""The page of a step of a language model: the verdict, every part, matmuls, terms, tilings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.advice.intervals import interval_range
from cubecore.answers.model.planned import extents_of, parts_of
from cubecore.answers.model.text import (
    bound_of,
    measure_of,
    memory_line,
    terms_rows,
    throughput,
    totals_rows,
)
from cubecore.models.products import BOTH
from cubecore.presented.text import duration

if TYPE_CHECKING:
    from cubecore.aliases import Json
    from cubecore.answers.model.planned import PlannedProduct, PlannedStep


def step_page(answer: PlannedStep) -> str:
    """Return the page."""
    from cubecore.reports.html.templates import rendered

    return rendered(
        "model.html",
        styles=("report.css", "model.css"),
        title=answer.title,
        step=answer.subtitle,
        figures=_figures(answer),
        remarks=[*answer.remarks, *_missing(answer)],
        not_counted=answer.not_counted,
        terms=terms_rows(answer),
        waterfall=_waterfall(answer),
        whole=_totals(answer),
        memory=_memory(answer),
        parts=_page_parts(answer),
        totals=totals_rows(answer),
        assumed=answer.assumed,
        tilings=[_tiling_cells(row) for row in answer.rows if row.tiling is not None],
    )


def _figures(answer: PlannedStep) -> list[tuple[str, str]]:
    fused, name = BOTH[0], measure_of(answer)
    us = answer.whole_us(fused)
    if us is None:
        return [(duration(answer.counted_us(fused)), "of the parts that have a time; no total")]
    likely = interval_range(answer.interval(fused))
    figures = [
        (duration(us), f"{name}, {fused}; {likely} in 8 of 10 cases"),
        (throughput(answer, fused), "of the cards that divide the model"),
    ]
    least = answer.least_memory_us
    if least is not None:
        share = f"of {name} is the time in which device memory gives weights and cache once"
        figures.append((f"{least / us:.0%}", share))
    return figures


def _missing(answer: PlannedStep) -> list[str]:
    missing = answer.missing(BOTH[0])
    return [f"No total: {'; '.join(missing)}."] if missing else []


def _waterfall(answer: PlannedStep) -> list[Json]:
    """Return a row for each part: it begins where the one above ends."""
    fused, split = (answer.parts(variant) for variant in BOTH)
    whole, x, rows = answer.counted_us(BOTH[0]) or 1.0, 0.0, []
    terms = frozenset(answer.term_us)
    for part, apart in zip(fused, split, strict=True):
        width = 100 * part.us / whole
        rows.append(
            {
                "name": part.name,
                "fused": duration(part.us) if part.us else "-",
                "split": duration(apart.us) if apart.us else "-",
                "x": f"{x:.2f}",
                "width": f"{width:.2f}",
                "colour": "term" if part.name in terms else "product",
                "share": f"{width:.0f}%",
                "bound": bound_of(part.limited_by),
                "missing": "; ".join(part.missing),
            }
        )
        x += width
    return rows


def _totals(answer: PlannedStep) -> list[tuple[str, str, str]]:
    """Return the rows under the parts: the step, fused and split, and its interval."""
    whole = [answer.whole_us(variant) for variant in BOTH]
    fused, split = ("no total" if us is None else duration(us) for us in whole)
    rows = [("step", fused, split)]
    if None not in whole:
        low, high = (interval_range(answer.interval(variant)) for variant in BOTH)
        rows.append(("in 8 of 10 cases", low, high))
    return rows


def _memory(answer: PlannedStep) -> Json:
    """Return weights and cache as shares of the card, or of what is needed where it is unknown."""
    memory = answer.memory
    whole = max(memory.card or 0, memory.needed)
    widths = [100 * size / whole for size in (memory.weights, memory.cache or 0)]
    edge = None if memory.card is None or memory.fits else 100 * memory.card / whole
    return {
        "line": memory_line(answer),
        "weights": f"{widths[0]:.2f}",
        "cache": f"{widths[1]:.2f}",
        "edge": None if edge is None else f"{edge:.2f}",
    }


def _page_parts(answer: PlannedStep) -> list[Json]:
    longest = max(((row.us or 0) * row.product.launches for row in answer.rows), default=0) or 1
    return [
        {"heading": heading, "rows": [_page_row(row, longest) for row in rows]}
        for heading, rows in parts_of(answer)
    ]


def _page_row(row: PlannedProduct, longest: float) -> Json:
    p, us = row.product, row.us
    step = None if us is None else us * p.launches
    return {
        "name": p.name,
        "variant": "" if len(p.variants) > 1 else p.variants[0],
        "extents": extents_of(row),
        "each": duration(us),
        "step": duration(step),
        "width": f"{100 * (step or 0) / longest:.2f}",
        "by": row.limited_by or "",
        "error": row.error,
    }


def _tiling_cells(row: PlannedProduct) -> tuple[str, ...]:
    t = row.tiling
    assert t is not None
    return (
        f"{row.product.name} of {row.product.layers}",
        str(t.usedCoreNum),
        f"{t.singleCoreM} x {t.singleCoreN} x {t.singleCoreK}",
        f"{t.baseM} x {t.baseN} x {t.baseK}",
        f"{t.stepKa}, {t.stepKb}",
        f"{t.depthA1}, {t.depthB1}",
        str(t.iterateOrder),
    )
