"""The answer of `model`: products of a step of a language model, their sums, its other terms."""

from __future__ import annotations

from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING

from cubecore.advice.intervals import Interval, interval, interval_range
from cubecore.answers.operators import TERMS
from cubecore.lazy_dataclass import dataclass
from cubecore.models.products import BOTH, HEAD, PARTS
from cubecore.presented import Presented
from cubecore.presented.text import duration, number, table
from cubecore.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cubecore.aliases import Json
    from cubecore.answers.operators import TermRow
    from cubecore.models.decoder import Decoder
    from cubecore.models.products import StepProduct
    from cubecore.models.step import InferenceStep
    from cubecore.presented import Figures
    from cubecore.tiling.model.request import TilingRequest
    from cubecore.tiling.model.tcubetiling import TCubeTiling

NOT_COUNTED = (*TERMS, "writes of the cache", "routing", "sampling", "time between launches")
"""Parts of a step that are no products of weights; no total of products has them."""
STEP = "step"
_GIGA, _WIDTH, _SHOWN_PRODUCTS = 1e9, 1000, 8


@dataclass(frozen=True, slots=True)
class PlannedProduct:
    """A product of the step with its plan, or with the `error` in its place.

    `timed` is True for the event model's time and False for the closed form's.
    """

    product: StepProduct
    request: TilingRequest
    us: float | None
    limited_by: str | None
    tiling: TCubeTiling | None
    timed: bool
    error: str | None = None

    @property
    def interval(self) -> Interval | None:
        """The time's interval, as `time` has it; None without a time."""
        if self.us is None:
            return None
        problem = self.request.problem
        return interval(self.us, self.request.chip.arch, "known", problem.a_type.bits)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights of one launch."""
        size: int = self.request.problem.b_type.bytes_of(self.product.weight_elements)
        return size

    def to_json(self) -> Json:
        """Return the row: extents, types, launches, times and the tiling."""
        p, problem, us = self.product, self.request.problem, self.us
        return {
            "product": p.name,
            "of": p.layers,
            "part": p.part,
            "variants": list(p.variants),
            "launches": p.launches,
            "m": p.m,
            "n": p.n,
            "k": p.k,
            "batch": p.batch,
            "a": problem.a,
            "c": problem.c,
            "bias": problem.bias,
            "us": us,
            "step_us": None if us is None else us * p.launches,
            "interval": None if self.interval is None else self.interval.to_json(),
            "limited_by": self.limited_by,
            "timed": self.timed,
            "weight_bytes": self.weight_bytes,
            "error": self.error,
            "problem": problem.to_json(),
            "tiling": None if self.tiling is None else self.tiling.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Total:
    """The time of the products of one layer of a kind, of the head, or of the step.

    `without` counts products that have no time and are not in it.
    """

    of: str
    variant: str
    count: int
    us: float
    weight_bytes: int
    without: int

    def to_json(self) -> Json:
        """Return the total, and what it leaves out."""
        return {
            "of": self.of,
            "variant": self.variant,
            "count": self.count,
            "us": self.us,
            "weight_bytes": self.weight_bytes,
            "products_without_time": self.without,
            "not_counted": list(NOT_COUNTED),
        }


@dataclass(frozen=True, slots=True)
class ModelStep(Presented):
    """The products of one step on one card with their plans and sums, and its other `terms`."""

    decoder: Decoder
    step: InferenceStep
    request: TilingRequest
    kept_type: str
    rows: tuple[PlannedProduct, ...]
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    terms: tuple[TermRow, ...] = ()
    without: frozenset[str] = frozenset()

    @property
    def complete(self) -> bool:
        """True if every product has a time."""
        return all(row.us is not None for row in self.rows)

    @property
    def totals(self) -> tuple[Total, ...]:
        """The sums: of one layer of each kind, of the head and of the step, fused and split."""
        kinds = [(kind.name, kind.count) for kind in self.decoder.layers]
        parts = [*kinds, (HEAD, 1), (STEP, 1)]
        return tuple(self.total(of, variant, count) for of, count in parts for variant in BOTH)

    def total(self, of: str, variant: str, count: int = 1) -> Total:
        """Return the sum over a layer of a kind, the head or the step, in a variant."""
        chosen = [
            (row, row.product.launches if of == STEP else 1)
            for row in self.rows
            if variant in row.product.variants and of in {STEP, row.product.layers}
        ]
        us = sum((row.us or 0.0) * times for row, times in chosen)
        weights = sum(row.weight_bytes * times for row, times in chosen)
        without = sum(row.us is None for row, _ in chosen)
        return Total(of, variant, count, us, weights, without)

    @property
    def term_us(self) -> Mapping[str, float]:
        """The time of each term in a step, of those that are counted."""
        sums = dict.fromkeys((term for term in TERMS if term not in self.without), 0.0)
        for row in self.terms:
            sums[row.term] += row.step_us
        return {term: us for term, us in sums.items() if any(r.term == term for r in self.terms)}

    def whole_us(self, variant: str) -> float:
        """Return the time of a step: its products in a variant, and all terms."""
        return self.total(STEP, variant).us + sum(self.term_us.values())

    def interval(self, variant: str) -> Interval:
        """Return the interval of a step in a variant: the model may be off alike on all its parts.

        The ends of the parts add up; collectives count with their time alone.
        """
        whole = self.whole_us(variant)
        parts = [
            (row.us, row.interval, row.product.launches)
            for row in self.rows
            if variant in row.product.variants
        ]
        parts += [(row.us, row.interval, row.launches) for row in self.terms]
        known = [(us, part, count) for us, part, count in parts if us is not None and part]
        return Interval(
            whole - sum((us - part.low_us) * count for us, part, count in known),
            whole + sum((part.high_us - us) * count for us, part, count in known),
        )

    @property
    def not_counted(self) -> tuple[str, ...]:
        """The terms that the time of a step leaves out, or has in part."""
        lacking = [row for row in self.terms if row.us is None]
        missing = dict.fromkeys(f"{row.term}, {row.name}: {row.error}" for row in lacking)
        left_out = (term for term in TERMS if term in self.without)
        return (*left_out, *missing, *NOT_COUNTED[len(TERMS) :], *self.decoder.left_out)

    @property
    def assumed(self) -> tuple[str, ...]:
        """Sentences about what the config and the step leave open."""
        return tuple(_assumed(self))

    def to_json(self) -> Json:
        """Return the public contract's object."""
        d, s, problem = self.decoder, self.step, self.request.problem
        return {
            "model": {
                "family": d.family,
                "hidden": d.hidden,
                "vocab": d.vocab,
                "layers": [{"name": kind.name, "count": kind.count} for kind in d.layers],
            },
            "step": {
                "phase": s.phase,
                "batch": s.batch,
                "seq": s.seq,
                "tokens": s.tokens,
                "tp": s.tp,
                "ep": s.ep,
            },
            "chip": problem.chip,
            "settings": dict(self.settings),
            "dtype": problem.a,
            "head_dtype": self.kept_type,
            "products": [row.to_json() for row in self.rows],
            "totals": [total.to_json() for total in self.totals],
            "terms": [row.to_json() for row in self.terms],
            "whole": [
                {
                    "variant": variant,
                    "us": self.whole_us(variant),
                    "interval": self.interval(variant).to_json(),
                    "terms_us": dict(self.term_us),
                }
                for variant in BOTH
            ],
            "assumed": list(self.assumed),
            "not_counted": list(self.not_counted),
        }

    @property
    def title(self) -> str:
        """The model in a line."""
        d = self.decoder
        kinds = ", ".join(f"{kind.count} {kind.name}s" for kind in d.layers)
        return f"{d.family}: {kinds}, hidden size {d.hidden:,}, vocabulary {d.vocab:,}"

    @property
    def subtitle(self) -> str:
        """The step in a line."""
        s, request = self.step, self.request
        tokens = ""
        if s.seq is not None and s.phase == "prefill":
            tokens = f" of {s.seq:,} tokens"
        elif s.seq is not None:
            tokens = f" behind {s.seq:,} tokens each"
        cards = f"tp {s.tp}" + (f", ep {s.ep}" if s.ep > 1 else "")
        what = f"{plural(s.batch, 'sequence')}{tokens}, {cards}, {request.problem.a}"
        return f"One {s.phase} of {what}, on one {request.chip.name}"

    @property
    def text(self) -> str:
        """The products by layer, and their sums."""
        lines = [self.title, self.subtitle]
        for heading, rows in _parts_of(self):
            lines += ["", heading, *table([_HEADS, *map(_cells, rows)])]
        lines += ["", "Sums of products alone", *table(_totals_rows(self))]
        missing = [row for row in self.rows if row.us is None]
        if missing:
            lines += ["", f"Without a time, and in no sum: {plural(len(missing), 'product')}"]
            lines += table((row.product.name, row.error) for row in missing)
        if self.terms:
            lines += ["", "Beside the products", *table(_terms_rows(self))]
            lines += ["", "The step with its terms", *table(_whole_rows(self))]
        lines += ["", "Not counted", *(f"  {name}" for name in self.not_counted)]
        lines += ["", "Assumed", *(f"  {sentence}" for sentence in self.assumed)]
        return "\n".join(lines) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each product."""
        rows = []
        for row in (row.to_json() for row in self.rows):
            row.pop("problem")
            tiling, variants = row.pop("tiling") or {}, " ".join(row.pop("variants"))
            rows.append({**row, "variants": variants, **tiling})
        return rows

    def _figures(self) -> Figures:
        figures = [("step", self.subtitle)]
        for total in (self.total(STEP, variant) for variant in BOTH):
            whole = duration(self.whole_us(total.variant))
            figures.append((total.variant, f"{whole}, of which products {duration(total.us)}"))
        return self.title, [*figures, ("not counted", ", ".join(self.not_counted))]

    def _picture(self) -> str:
        """Return the longest products of a fused step as bars."""
        from cubecore.presented.card import bars

        times = {
            f"{row.product.name} of {row.product.layers}": row.us * row.product.launches
            for row in self.rows
            if row.us is not None and "fused" in row.product.variants
        }
        whole = sum(times.values())
        longest = sorted(times, key=lambda name: -times[name])[:_SHOWN_PRODUCTS]
        return bars({name: times[name] / whole for name in longest}, label_width=180)

    def _page(self) -> str:
        return self.page()

    def page(self) -> str:
        """Return the page: the step by product, the products by layer, the sums and the tilings."""
        from cubecore.reports.html.templates import rendered

        return rendered(
            "model.html",
            styles=("report.css", "model.css"),
            title=self.title,
            step=self.subtitle,
            figures=_page_figures(self),
            not_counted=self.not_counted,
            terms=_terms_rows(self),
            whole=_whole_rows(self),
            stacked=_stacked(self),
            parts=_page_parts(self),
            totals=_totals_rows(self),
            assumed=self.assumed,
            tilings=[_tiling_cells(row) for row in self.rows if row.tiling is not None],
        )


def _assumed(step: ModelStep) -> Iterator[str]:
    layout = "" if step.request.problem.format_b == "ND" else ", in NZ"
    yield f"weights lie as a checkpoint has them, [n, k]{layout}"
    if any(row.product.name.startswith("experts ") for row in step.rows):
        yield "tokens spread evenly over the experts, whose products are one launch"
    if step.step.phase == "prefill":
        yield "the head computes the last token of each sequence"
    if step.request.problem.a != step.kept_type:
        yield f"the head, routers and products by head are {step.kept_type}"
    closed = sum(not row.timed and row.us is not None for row in step.rows)
    if closed:
        yield f"{closed} of the times are the closed form's, which no event timing confirms"
    yield from dict.fromkeys(sentence for row in step.terms for sentence in row.assumed)


_HEADS = ("product", "variant", "M x N x K", "each", "a step", "by")


def _parts_of(answer: ModelStep) -> Iterator[tuple[str, list[PlannedProduct]]]:
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


def _cells(row: PlannedProduct) -> Sequence[str]:
    p = row.product
    variant = "" if len(p.variants) > 1 else p.variants[0]
    if row.us is None:
        return (p.name, variant, _extents(row), "-", "-", "-")
    times = duration(row.us), duration(row.us * p.launches)
    return (p.name, variant, _extents(row), *times, row.limited_by or "")


_TERM_HEADS = ("term", "of", "operator", "extents", "each", "a step")


def _terms_rows(answer: ModelStep) -> list[Sequence[str]]:
    """Return the operators and collectives of a step as rows, under a row of heads."""
    return [_TERM_HEADS, *(row.cells for row in answer.terms)] if answer.terms else []


def _whole_rows(answer: ModelStep) -> list[tuple[str, ...]]:
    """Return the time of a step as rows: products, each term, and all, fused beside split."""
    products = [answer.total(STEP, variant).us for variant in BOTH]
    rows: list[tuple[str, ...]] = [("", *BOTH), ("products", *map(duration, products))]
    rows += [(term, *(duration(us),) * 2) for term, us in answer.term_us.items()]
    rows.append(("step", *(duration(answer.whole_us(variant)) for variant in BOTH)))
    return [*rows, ("in 8 of 10 cases", *(interval_range(answer.interval(v)) for v in BOTH))]


def _extents(row: PlannedProduct) -> str:
    """Return M x N x K of a product, with the number of matrices in front of a batch."""
    p = row.product
    return f"{p.batch} of " * (p.batch > 1) + f"{p.m} x {p.n} x {p.k}"


def _totals_rows(answer: ModelStep) -> list[tuple[str, ...]]:
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


def _page_figures(answer: ModelStep) -> list[tuple[str, str]]:
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


def _page_parts(answer: ModelStep) -> list[Json]:
    longest = max(((row.us or 0) * row.product.launches for row in answer.rows), default=0) or 1
    return [
        {"heading": heading, "rows": [_page_row(row, longest) for row in rows]}
        for heading, rows in _parts_of(answer)
    ]


def _page_row(row: PlannedProduct, longest: float) -> Json:
    p, us = row.product, row.us
    step = None if us is None else us * p.launches
    return {
        "name": p.name,
        "variant": "" if len(p.variants) > 1 else p.variants[0],
        "extents": _extents(row),
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
