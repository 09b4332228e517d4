"""A step of a language model with the plans of its matmuls: sums, parts, memory, throughput."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from cubecore.advice.intervals import Interval, interval
from cubecore.answers.operators import TERMS
from cubecore.models.operators import ATTENTION
from cubecore.models.products import BOTH, HEAD, PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cubecore.aliases import Json
    from cubecore.answers.operators import TermRow
    from cubecore.models.decoder import Decoder
    from cubecore.models.memory import CardMemory
    from cubecore.models.products import StepProduct
    from cubecore.models.step import InferenceStep
    from cubecore.tiling.model.request import TilingRequest
    from cubecore.tiling.model.tcubetiling import TCubeTiling

NOT_COUNTED = (*TERMS, "sampling")
"""Parts of a step that are no matmuls of weights; no total of matmuls has them."""
STEP = "step"

_EXPERTS = "experts "
_PROJECTIONS = "projections"
"""The matmuls of attention, whose scores and values are the term of that name."""


@dataclass(frozen=True, slots=True)
class PlannedProduct:
    """A matmul of the step with its plan, or with the `error` in its place.

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
    def is_measured(self) -> bool:
        """True of one matmul a launch: no published time is of experts' in one."""
        return not self.product.name.startswith(_EXPERTS)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights of one launch."""
        size: int = self.request.problem.b_type.bytes_of(self.product.weight_elements)
        return size

    def to_json(self) -> Json:
        """Return the row: sizes, types, launches, times and the tiling."""
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

    `without` counts matmuls that have no time and are not in it.
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
class StepPart:
    """A part of a step: matmuls of a part of the layers, or a term beside them.

    `us` is the time of what has one, `limited_by` what holds most of it; `missing` says what of it
    has no time, and why.
    """

    name: str
    us: float
    limited_by: str
    missing: tuple[str, ...] = ()

    def to_json(self) -> Json:
        """Return the part."""
        return {
            "part": self.name,
            "us": self.us,
            "limited_by": self.limited_by,
            "missing": list(self.missing),
        }


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """The matmuls of one step on one card with their plans and sums, and its other `terms`.

    `dtype_from` says where the type of the products comes from.
    """

    decoder: Decoder
    step: InferenceStep
    request: TilingRequest
    kept_type: str
    rows: tuple[PlannedProduct, ...]
    memory: CardMemory
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    terms: tuple[TermRow, ...] = ()
    without: frozenset[str] = frozenset()
    dtype_from: str = ""

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
            tokens = f", {s.seq:,} tokens each"
        elif s.seq is not None:
            tokens = f", context {s.seq:,}"
        cards = f"tp {s.tp}" + (f", ep {s.ep}" if s.ep > 1 else "")
        what = f"batch {s.batch}{tokens}, {cards}, {request.problem.a}"
        count = max(s.tp, s.ep)
        where = f"one {request.chip.name}" if count == 1 else f"{count} {request.chip.name}"
        return f"{s.phase.capitalize()} step: {what}, on {where}"

    @property
    def complete(self) -> bool:
        """True if every matmul has a time."""
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

    def parts(self, variant: str) -> tuple[StepPart, ...]:
        """Return the parts of a step in a variant: matmuls by part of the layers, then terms."""
        rows = [row for row in self.rows if variant in row.product.variants]
        parts = []
        for name in PARTS:
            of_part = [row for row in rows if row.product.part == name]
            timed = [(r.limited_by or "", r.us * r.product.launches) for r in of_part if r.us]
            missing = (f"{row.product.name} ({row.error})" for row in of_part if row.us is None)
            called = _PROJECTIONS if name == ATTENTION else name
            parts += [_part(called, timed, missing)] if of_part else []
        for name in self.term_us:
            of_term = [row for row in self.terms if row.term == name]
            timed = [(row.bound or "", row.step_us) for row in of_term if row.us]
            missing = (f"{name} ({row.error})" for row in of_term if row.us is None)
            parts.append(_part(name, timed, missing))
        return tuple(parts)

    def missing(self, variant: str) -> tuple[str, ...]:
        """Return what keeps a step from having a total: parts without a time, and why.

        Attention is as long as all matmuls of a long context: a sum without it is no step's. Other
        terms can be left out, and the total is named by them.
        """
        parts = self.parts(variant)
        lacking = [sentence for part in parts for sentence in part.missing]
        return (*([f"{ATTENTION} (left out)"] if ATTENTION in self.without else []), *lacking)

    def counted_us(self, variant: str) -> float:
        """Return the time of what has one: the matmuls in a variant, and all terms."""
        return self.total(STEP, variant).us + sum(self.term_us.values())

    def whole_us(self, variant: str) -> float | None:
        """Return the time of a step in a variant; None where a part of it has no time."""
        return None if self.missing(variant) else self.counted_us(variant)

    def tokens_per_second(self, variant: str) -> float | None:
        """Return the tokens of a second: made by a decode, read by a prefill; None without a total.

        They are those of all cards that divide heads and widths, together.
        """
        us = self.whole_us(variant)
        return self.step.tokens / us * 1e6 if us else None

    @property
    def least_memory_us(self) -> float | None:
        """The time in which device memory gives the weights, and in a decode the cache, once.

        None where its rate or the context is not known.
        """
        rate, cache = self.request.chip.hbm_bytes_per_second, self.memory.cache
        if self.step.phase == "prefill":
            cache = 0
        if rate is None or cache is None:
            return None
        return (self.total(STEP, BOTH[0]).weight_bytes + cache) / rate * 1e6

    def interval(self, variant: str) -> Interval:
        """Return the interval of what has a time: the model may be off alike on all its parts.

        The ends of the parts add up; collectives count with their time alone.
        """
        whole = self.counted_us(variant)
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

    def unmeasured(self, variant: str) -> Mapping[str, float]:
        """Return the microseconds of a step in kinds of kernels of which none was measured.

        Experts' matmuls in one launch, operators that no publication times, collectives.
        """
        found: dict[str, float] = {}
        for row in self.rows:
            if variant in row.product.variants and row.us and not row.is_measured:
                name = row.product.name
                found[name] = found.get(name, 0.0) + row.us * row.product.launches
        for term in self.terms:
            if term.us and (term.interval is None or not term.interval.measured):
                found[term.op] = found.get(term.op, 0.0) + term.step_us
        return found

    @property
    def not_counted(self) -> tuple[str, ...]:
        """The terms that the time of a step leaves out, or has in part."""
        lacking = [row for row in self.terms if row.us is None]
        missing = dict.fromkeys(f"{row.term}, {row.name}: {row.error}" for row in lacking)
        left_out = (term for term in TERMS if term in self.without)
        return (*left_out, *missing, *NOT_COUNTED[len(TERMS) :], *self.decoder.left_out)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences about what of the request the model or its checkpoint does not bear out."""
        decoder, seq = self.decoder, self.step.seq
        limit, remarks = decoder.context_limit, []
        if limit is not None and seq is not None and seq > limit:
            remarks.append(
                f"{seq:,} tokens are beyond the model's limit of {limit:,} ({decoder.limit_field})"
            )
        if self.memory.fits is False:
            remarks.append("weights and cache do not fit into the card; timed because of --force")
        return tuple(remarks)

    @property
    def assumed(self) -> tuple[str, ...]:
        """Sentences about what the config and the step leave open."""
        return tuple(_assumed(self))

    def to_json(self) -> Json:
        """Return the public contract's object."""
        d, s, problem, memory = self.decoder, self.step, self.request.problem, self.memory
        return {
            "model": {
                "family": d.family,
                "hidden": d.hidden,
                "vocab": d.vocab,
                "layers": [{"name": kind.name, "count": kind.count} for kind in d.layers],
                "context_limit": d.context_limit,
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
            "dtype_from": self.dtype_from,
            "head_dtype": self.kept_type,
            "memory": {
                "weight_bytes": memory.weights,
                "cache_bytes": memory.cache,
                "cache_bytes_per_token": memory.cache_token,
                "card_bytes": memory.card,
                "card_source": memory.source or None,
                "fits": memory.fits,
            },
            "least_memory_us": self.least_memory_us,
            "products": [row.to_json() for row in self.rows],
            "totals": [total.to_json() for total in self.totals],
            "terms": [row.to_json() for row in self.terms],
            "whole": [self._whole_json(variant) for variant in BOTH],
            "remarks": list(self.remarks),
            "assumed": list(self.assumed),
            "not_counted": list(self.not_counted),
        }

    def _whole_json(self, variant: str) -> Json:
        us, decodes = self.whole_us(variant), self.step.phase == "decode"
        return {
            "variant": variant,
            "us": us,
            "interval": None if us is None else self.interval(variant).to_json(),
            "counted_us": self.counted_us(variant),
            "missing": list(self.missing(variant)),
            "tokens_per_second": self.tokens_per_second(variant),
            "unmeasured_us": dict(self.unmeasured(variant)),
            "tpot_us": us if decodes else None,
            "ttft_us": None if decodes else us,
            "parts": [part.to_json() for part in self.parts(variant)],
            "terms_us": dict(self.term_us),
        }


def _part(name: str, timed: list[tuple[str, float]], missing: Iterator[str]) -> StepPart:
    """Return a part, of what limits each of its launches and for how long."""
    held: dict[str, float] = {}
    for limited_by, us in timed:
        held[limited_by] = held.get(limited_by, 0.0) + us
    most = max(held, key=lambda limit: held[limit], default="")
    return StepPart(name, sum(held.values()), most, tuple(dict.fromkeys(missing)))


def _assumed(step: PlannedStep) -> Iterator[str]:
    problem, decoder = step.request.problem, step.decoder
    yield f"matmuls are {problem.a}{step.dtype_from and f': {step.dtype_from}'}"
    if decoder.quantised is not None and decoder.stored_type == problem.a:
        yield (
            f"the checkpoint is quantised ({decoder.quantised}), which is not read: --dtype gives "
            "the type of its matmuls"
        )
    layout = "" if problem.format_b == "ND" else ", in NZ"
    yield f"weights are stored [n, k], as in the checkpoint{layout}"
    if any(not row.is_measured for row in step.rows):
        yield "tokens spread evenly over the experts, whose matmuls are one launch"
    if step.step.phase == "prefill":
        yield "the head computes the last token of each sequence"
    yield f"every layer caches the whole context in {step.kept_type}"
    if problem.a != step.kept_type:
        yield f"the head, routers and matmuls by head are {step.kept_type}"
    closed = sum(not row.timed and row.us is not None for row in step.rows)
    if closed:
        yield f"{closed} of the times are the closed form's, which no event timing confirms"
    yield from dict.fromkeys(sentence for row in step.terms for sentence in row.assumed)


def extents_of(row: PlannedProduct) -> str:
    """Return M x N x K of a matmul, with the number of matrices in front of a batch."""
    p = row.product
    return f"{p.batch} of " * (p.batch > 1) + f"{p.m} x {p.n} x {p.k}"


def parts_of(answer: PlannedStep) -> Iterator[tuple[str, list[PlannedProduct]]]:
    """Yield a heading for each kind of layer and the head, with its products."""
    rows: dict[str, list[PlannedProduct]] = {}
    for row in answer.rows:
        rows.setdefault(row.product.layers, []).append(row)
    for name, some in rows.items():
        count = some[0].product.launches
        capital = f"{name[0].upper()}{name[1:]}"
        yield f"{capital}, {'once' if name == HEAD else count} a step", some
