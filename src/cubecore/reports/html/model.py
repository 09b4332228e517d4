"""The products of a model's step as one self-contained page without a script."""

from cubecore.aliases import Json
from cubecore.models.products import BOTH, HEAD, PARTS
from cubecore.reports.html.templates import rendered
from cubecore.reports.text.answers import duration, number
from cubecore.reports.text.model import (
    extents,
    model_lines,
    parts_of,
    terms_rows,
    totals_rows,
    whole_rows,
)
from cubecore.workflows.model import STEP, ModelStep, PlannedProduct

_WIDTH = 1000


def model_page(answer: ModelStep) -> str:
    """Return the page: the step by product, the products by layer, the sums and the tilings."""
    title, step = model_lines(answer)
    return rendered(
        "model.html",
        styles=("report.css", "model.css"),
        title=title,
        step=step,
        figures=_figures(answer),
        not_counted=answer.not_counted,
        terms=terms_rows(answer),
        whole=whole_rows(answer),
        stacked=_stacked(answer),
        parts=_parts(answer),
        totals=totals_rows(answer),
        assumed=answer.assumed,
        tilings=[_tiling(row) for row in answer.rows if row.tiling is not None],
    )


def _figures(answer: ModelStep) -> list[tuple[str, str]]:
    totals = [answer.total(STEP, variant) for variant in BOTH]
    figures = [(duration(answer.whole_us(v)), f"a step with its terms, {v}") for v in BOTH]
    figures += [(duration(total.us), f"its products, {total.variant}") for total in totals]
    weights, us = totals[0].weight_bytes, totals[0].us
    figures.append((f"{number(weights / 1e9)} GB", "weights of a step"))
    if us:
        figures.append((f"{number(weights / us / 1e6)} TB/s", "weights over that time, fused"))
    return figures


def _stacked(answer: ModelStep) -> list[Json]:
    """Return a bar for each variant: products in order, in the colours of their parts."""
    bars = []
    for variant in BOTH:
        rows = [row for row in answer.rows if variant in row.product.variants and row.us]
        times = [(row.us or 0.0) * row.product.launches for row in rows]
        whole, x, bar_parts = sum(times), 0.0, []
        shares = dict.fromkeys(PARTS, 0.0)
        for row, us in zip(rows, times, strict=True):
            width, p = us / whole * _WIDTH, row.product
            name = p.name if p.layers == HEAD else f"{p.name} of {p.launches} {p.layers}s"
            bar_parts.append(
                {
                    "title": f"{name}: {duration(us)}, {us / whole:.0%}",
                    "colour": PARTS.index(p.part),
                    "x": f"{x:.2f}",
                    "width": f"{width:.2f}",
                }
            )
            shares[p.part] += us / whole
            x += width
        key = [(PARTS.index(part), part, f"{share:.0%}") for part, share in shares.items() if share]
        bars.append({"variant": variant, "time": duration(whole), "parts": bar_parts, "key": key})
    return bars


def _parts(answer: ModelStep) -> list[Json]:
    longest = max(((row.us or 0) * row.product.launches for row in answer.rows), default=0) or 1
    return [
        {"heading": heading, "rows": [_row(row, longest) for row in rows]}
        for heading, rows in parts_of(answer)
    ]


def _row(row: PlannedProduct, longest: float) -> Json:
    p, us = row.product, row.us
    step = None if us is None else us * p.launches
    return {
        "name": p.name,
        "variant": "" if len(p.variants) > 1 else p.variants[0],
        "extents": extents(row),
        "each": duration(us),
        "step": duration(step),
        "width": f"{100 * (step or 0) / longest:.2f}",
        "by": row.limited_by or "",
        "error": row.error,
    }


def _tiling(row: PlannedProduct) -> tuple[str, ...]:
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
