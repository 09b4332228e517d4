"""model: a step of a language model: its products, planned and timed, and its other terms."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

from cubecore.aliases import Json, JsonMapping
from cubecore.chips import chip as chip_record
from cubecore.chips import default_chip
from cubecore.dtypes import element_type, type_name
from cubecore.errors import refuse
from cubecore.kernels.runnable import require_timed
from cubecore.lazy_dataclass import dataclass
from cubecore.models.decoder import Decoder
from cubecore.models.families import read_decoder
from cubecore.models.products import BOTH, HEAD, StepProduct, step_products
from cubecore.models.step import InferenceStep
from cubecore.presented import Presented
from cubecore.tiling.model.problem import MX_FORMATS
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.workflows.calibration.intervals import Interval, interval
from cubecore.workflows.operators.step_terms import TERMS, TermRow, require_terms, step_terms
from cubecore.workflows.request import TilingRequest, make_request
from cubecore.workflows.sweep.plan_many import QueryAnswer, plan_many

NOT_COUNTED = (*TERMS, "writes of the cache", "routing", "sampling", "time between launches")
"""Parts of a step that are no products of weights; no total of products has them."""
STEP = "step"
DEFAULT_TYPE = "bfloat16"
_WIDE = ("float16", "bfloat16", "float32")
"""Types in which a product leaves its result; narrower ones leave 16 bits."""
_DEQUANTISED = MappingProxyType({"int8": "VDEQF16", "int4": "VDEQF16"})
"""Modes of fixpipe that make float16 of integer products with a scale for each column."""


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


def model(
    config: object,
    *,
    phase: str,
    batch: int,
    seq: int | None = None,
    tp: int = 1,
    ep: int = 1,
    dtype: object = DEFAULT_TYPE,
    head_dtype: object = None,
    format_b: str = "ND",
    chip: str | None = None,
    settings: Mapping[str, str] | None = None,
    store: str | None = None,
    without: Sequence[str] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> ModelStep:
    """Return a step of a language model: its products, planned and timed, and its other terms.

    Parameters
    ----------
    config : str, Path or mapping
        A ``config.json`` of Hugging Face, its folder, its fields, or transformers' configuration.
    phase, batch, seq : str, int, int or None
        ``prefill`` or ``decode``, the sequences in the step, and the tokens of each in a prefill,
        or the context of a decode, which attention depends on.
    tp, ep : int
        Cards that divide heads and widths, and cards that divide the experts.
    dtype, format_b : str or dtype, str
        The element type of the products (bf16, int8, mxfp8, NumPy's, ...); ND or NZ weights.
    head_dtype : str or dtype or None
        That of head, router and MLA's products by head: `dtype`, or bfloat16 for narrower.
    chip, settings : str or None, mapping or None
        The SoC (CUBECORE_CHIP's, else Ascend910B3), and fields of it to replace: a what-if chip.
    without : sequence of str
        Terms that are not counted: attention, norms, rotary, activations, collectives, ...
    store, progress : str or None, callable
        As for `plan_many`, and a callable that is told how many plans are made.

    Returns
    -------
    ModelStep
        Every product with its plan, sums by layer and step, and the time of each term.

    Raises
    ------
    RequestError
        If config or step is malformed, or the chip does not time such products.

    Examples
    --------
    >>> sizes = {"num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 128}
    >>> config = {"model_type": "llama", "num_hidden_layers": 2, "vocab_size": 256} | sizes
    >>> step = cubecore.model(config, phase="decode", batch=1)
    """
    (kind, kept), left_out = _types(dtype, head_dtype), require_terms(without)
    keys = {"chip": chip or default_chip(), "format_b": format_b}
    decoder, step = read_decoder(config), InferenceStep(phase, batch, seq, tp, ep)
    planned = _planned_step(decoder, step, kind, kept, keys, settings, store, progress)
    return _with_terms(planned, kind, left_out)


def _planned_step(
    decoder: Decoder,
    step: InferenceStep,
    kind: str,
    kept: str,
    keys: Mapping[str, str],
    settings: Mapping[str, str] | None,
    store: str | None,
    progress: Callable[[int], None],
) -> ModelStep:
    """Plan every product of a step, of problems that have these keys in common.

    `kept` is the type of what keeps 16 bits, `kind` that of the others.
    """
    require_timed(chip_record(keys["chip"]).what_if(settings or {}))
    products = step_products(decoder, step)
    problems = [
        {**keys, **_problem(product, kept if product.kept else kind)} for product in products
    ]
    requests = [make_request(problem, settings, {}) for problem in problems]
    rows = tuple(_planned(products, requests, settings, store, progress))
    return ModelStep(decoder, step, requests[0], requests[-1].problem.a, rows, settings or {})


def _with_terms(planned: ModelStep, kind: str, left_out: frozenset[str]) -> ModelStep:
    """Add the terms beside the products, but those that are left out."""
    target, kept = planned.request.chip, planned.kept_type
    terms = step_terms(planned.decoder, planned.step, target, kind, kept, left_out)
    return replace(planned, terms=terms, without=left_out)


def _types(dtype: object, head_dtype: object) -> tuple[str, str]:
    """Return the type of the products, and of those that keep 16 bits."""
    kind = _type(dtype, "dtype")
    return kind, _kept_type(kind) if head_dtype is None else _type(head_dtype, "head_dtype")


def _type(given: object, subject: str) -> str:
    """Return our name of an element type, or a name of values with scales."""
    name = type_name(given)
    if not isinstance(name, str):
        raise refuse(subject, "be the name of an element type", type(given).__name__)
    return name if name in MX_FORMATS else element_type(name, subject).name


def _kept_type(kind: str) -> str:
    """Return the type of what keeps 16 bits where the products have fewer."""
    return kind if kind in _WIDE else DEFAULT_TYPE


def _problem(product: StepProduct, kind: str) -> Json:
    """Return the keys of a product's problem: weights as a checkpoint has them."""
    keys: Json = {name: getattr(product, name) for name in ("m", "n", "k", "batch")}
    keys |= {"a": kind, "trans_b": not product.stored_kn}
    if kind in _DEQUANTISED:
        keys |= {"c": "float16", "epilogue": {"quant": _DEQUANTISED[kind]}}
    else:
        keys["c"] = kind if kind in _WIDE else DEFAULT_TYPE
    if product.bias:
        keys["bias"] = "int32" if kind in _DEQUANTISED else "float32"
    return keys


def _planned(
    products: Sequence[StepProduct],
    requests: Sequence[TilingRequest],
    settings: Mapping[str, str] | None,
    store: str | None,
    progress: Callable[[int], None],
) -> Iterator[PlannedProduct]:
    """Yield each product with its plan; equal problems are planned once."""
    different = list(dict.fromkeys(_key(request) for request in requests))
    asked = {_key(request): request.problem for request in requests}
    answers: dict[str, QueryAnswer] = {}
    problems = [asked[key] for key in different]
    plans = plan_many(problems, settings=settings, alternatives=0, store=store)
    for key, answer in zip(different, plans, strict=True):
        answers[key] = answer
        progress(len(answers))
    for product, request in zip(products, requests, strict=True):
        yield _row(product, request, answers[_key(request)].to_json())


def _key(request: TilingRequest) -> str:
    return repr(request.problem)


def _row(product: StepProduct, request: TilingRequest, answer: JsonMapping) -> PlannedProduct:
    if error := answer.get("error"):
        message = str(error["message"]).replace("\n", "; ")
        return PlannedProduct(product, request, None, None, None, False, message)
    best: Any = answer["predicted"]
    tiling = TCubeTiling.from_json(answer["tiling"])
    figures = best["us"], best["limited_by"]
    return PlannedProduct(product, request, *figures, tiling, timed=answer["timed"] > 0)


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
