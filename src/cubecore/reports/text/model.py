"""The products of a model's step as text: a table for each kind of layer, and their sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.models.collectives import COLLECTIVES
from cubecore.models.products import BOTH
from cubecore.reports.text.answers import duration, interval_range, number, table
from cubecore.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cubecore.workflows.model import ModelStep, PlannedProduct, Total
    from cubecore.workflows.operators.step_terms import TermRow

_GIGA = 1e9
STEP = "step"


def model_text(answer: ModelStep) -> str:
    """Return the products of a step, and their sums."""
    lines = [*model_lines(answer)]
    for heading, rows in parts_of(answer):
        lines += ["", heading, *table([_HEADS, *map(_row, rows)])]
    lines += ["", "Sums of products alone", *table(totals_rows(answer))]
    missing = [row for row in answer.rows if row.us is None]
    if missing:
        lines += ["", f"Without a time, and in no sum: {plural(len(missing), 'product')}"]
        lines += table((row.product.name, row.error) for row in missing)
    if answer.terms:
        lines += ["", "Beside the products", *table(terms_rows(answer))]
        lines += ["", "The step with its terms", *table(whole_rows(answer))]
    lines += ["", "Not counted", *(f"  {name}" for name in answer.not_counted)]
    lines += ["", "Assumed", *(f"  {sentence}" for sentence in answer.assumed)]
    return "\n".join(lines) + "\n"


def model_lines(answer: ModelStep) -> tuple[str, str]:
    """Return the model and its step, a line each."""
    d, s, problem = answer.decoder, answer.step, answer.request.problem
    kinds = ", ".join(f"{kind.count} {kind.name}s" for kind in d.layers)
    of_each = "" if s.seq is None else f" of {s.seq:,} tokens"
    behind = "" if s.seq is None else f" behind {s.seq:,} tokens each"
    sequences = plural(s.batch, "sequence")
    what = f"{sequences}{of_each}" if s.phase == "prefill" else f"{sequences}{behind}"
    cards = f"tp {s.tp}" + (f", ep {s.ep}" if s.ep > 1 else "")
    return (
        f"{d.family}: {kinds}, hidden size {d.hidden:,}, vocabulary {d.vocab:,}",
        f"One {s.phase} of {what}, {cards}, {problem.a}, on one {answer.request.chip.name}",
    )


_HEADS = ("product", "variant", "M x N x K", "each", "a step", "by")


def parts_of(answer: ModelStep) -> Iterator[tuple[str, list[PlannedProduct]]]:
    """Yield a heading for each kind of layer and the head, with its products."""
    rows: dict[str, list[PlannedProduct]] = {}
    for row in answer.rows:
        rows.setdefault(row.product.layers, []).append(row)
    for name, some in rows.items():
        count = some[0].product.launches
        heading = (
            "Head, once a step"
            if name == "head"
            else f"{name[0].upper()}{name[1:]}, {count} a step"
        )
        yield heading, some


def _row(row: PlannedProduct) -> Sequence[str]:
    p = row.product
    variant = "" if len(p.variants) > 1 else p.variants[0]
    if row.us is None:
        return (p.name, variant, extents(row), "-", "-", "-")
    times = duration(row.us), duration(row.us * p.launches)
    return (p.name, variant, extents(row), *times, row.limited_by or "")


_TERM_HEADS = ("term", "of", "operator", "extents", "each", "a step")


def terms_rows(answer: ModelStep) -> list[Sequence[str]]:
    """Return the operators and collectives of a step as rows, under a row of heads."""
    return [_TERM_HEADS, *map(_term, answer.terms)] if answer.terms else []


def _term(row: TermRow) -> Sequence[str]:
    """Return a row of an operator or a collective."""
    counts = " x ".join(map(str, row.extents))
    if row.term == COLLECTIVES:
        counts = "{:,} B on {} cards".format(*row.extents)
    times = ("-", "-") if row.us is None else (duration(row.us), duration(row.step_us))
    return (row.term, f"{row.name}, {row.layers}", row.op, counts or "-", *times)


def whole_rows(answer: ModelStep) -> list[tuple[str, ...]]:
    """Return the time of a step as rows: products, each term, and all, fused beside split."""
    products = [answer.total(STEP, variant).us for variant in BOTH]
    rows: list[tuple[str, ...]] = [("", *BOTH), ("products", *map(duration, products))]
    rows += [(term, *(duration(us),) * 2) for term, us in answer.term_us.items()]
    rows.append(("step", *(duration(answer.whole_us(variant)) for variant in BOTH)))
    return [*rows, ("in 8 of 10 cases", *(interval_range(answer.interval(v)) for v in BOTH))]


def extents(row: PlannedProduct) -> str:
    """Return M x N x K of a product, with the number of matrices in front of a batch."""
    p = row.product
    return f"{p.batch} of " * (p.batch > 1) + f"{p.m} x {p.n} x {p.k}"


def totals_rows(answer: ModelStep) -> list[tuple[str, ...]]:
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
