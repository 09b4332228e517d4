"""model: a step of a language model: its matmuls, planned and timed, and its other terms."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cubecore.aliases import Json, JsonMapping
from cubecore.answers.model.answer import ModelStep
from cubecore.answers.model.planned import PlannedProduct
from cubecore.chips import chip as chip_record
from cubecore.chips import default_chip
from cubecore.chips.model import Chip
from cubecore.dtypes import element_type, type_name
from cubecore.errors import RequestError, refuse, unable
from cubecore.kernels.runnable import require_timed
from cubecore.models.decoder import Decoder
from cubecore.models.families import read_decoder
from cubecore.models.memory import CardMemory, card_memory
from cubecore.models.products import StepProduct, step_products
from cubecore.models.step import InferenceStep
from cubecore.presented.text import number
from cubecore.tiling.model.problem import MX_FORMATS
from cubecore.tiling.model.request import TilingRequest
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.units import plural
from cubecore.workflows.operators.step_terms import StepTypes, require_terms, step_terms
from cubecore.workflows.request import make_request
from cubecore.workflows.sweep.plan_many import plan_many

if TYPE_CHECKING:
    from cubecore.answers.plan import QueryAnswer

DEFAULT_TYPE = "bfloat16"
_WIDE = ("float16", "bfloat16", "float32")
"""Types in which a matmul leaves its result; narrower ones leave 16 bits."""
_DEQUANTISED = MappingProxyType({"int8": "VDEQF16", "int4": "VDEQF16"})
"""Modes of fixpipe that make float16 of integer matmuls with a scale for each column."""


@dataclass(frozen=True, slots=True)
class _Types(StepTypes):
    """The element types of a step; `source` says where that of the products comes from."""

    source: str = ""


def model(
    config: object,
    *,
    phase: str,
    batch: int,
    seq: int | None = None,
    tp: int = 1,
    ep: int = 1,
    dtype: object = None,
    head_dtype: object = None,
    format_b: str = "ND",
    chip: str | None = None,
    settings: Mapping[str, str] | None = None,
    store: str | None = None,
    without: Sequence[str] = (),
    force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> ModelStep:
    """Return a step of a language model: its products, planned and timed, and its other terms.

    Parameters
    ----------
    config : str, Path or mapping
        Hugging Face's ``config.json``, its folder, its fields, or transformers' configuration.
    phase, batch, seq : str, int, int or None
        ``prefill`` or ``decode``, sequences, and the tokens of each or the context of a decode.
    tp, ep : int
        Cards that divide heads and widths, and cards that divide the experts.
    dtype, format_b : str or dtype or None, str
        Type of the products (bf16, int8, mxfp8, ...), the config's unless given; ND or NZ weights.
    head_dtype : str or dtype or None
        That of head, router, cache: `dtype`, of narrower ones the config's, else bfloat16.
    chip, settings : str or None, mapping or None
        The SoC (CUBECORE_CHIP's, else Ascend910B3), and fields of it to replace: a what-if chip.
    without, force : sequence of str, bool
        Terms that are not counted (norms, ...); True times what does not fit into the card.
    store, progress : str or None, callable
        As for `plan_many`, and a callable that is told how many plans are made.

    Returns
    -------
    ModelStep
        Every product with its plan, sums by layer and step, and the time of each term.

    Raises
    ------
    RequestError
        If config or step is malformed or too large for the card, or no model times the chip.

    Examples
    --------
    >>> sizes = {"num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 128}
    >>> config = {"model_type": "llama", "num_hidden_layers": 2, "vocab_size": 256} | sizes
    >>> step = cubecore.model(config, phase="decode", batch=1)
    """
    left_out, decoder = require_terms(without), read_decoder(config)
    step, types = InferenceStep(phase, batch, seq, tp, ep), _types(decoder, dtype, head_dtype)
    keys = {"chip": chip or default_chip(), "format_b": format_b}
    memory = _memory(decoder, step, types, _chip(keys, settings), force=force)
    return _planned_step(decoder, step, types, keys, settings, memory, left_out, store, progress)


def _planned_step(
    decoder: Decoder,
    step: InferenceStep,
    types: _Types,
    keys: Mapping[str, str],
    settings: Mapping[str, str] | None,
    memory: CardMemory,
    left_out: frozenset[str],
    store: str | None,
    progress: Callable[[int], None],
) -> ModelStep:
    """Plan every matmul of a step; `keys` of a problem are those that all have in common."""
    products = step_products(decoder, step)
    problems = [
        {**keys, **_problem(product, types.kept if product.kept else types.products)}
        for product in products
    ]
    requests = [make_request(problem, settings, {}) for problem in problems]
    rows = tuple(_planned(products, requests, settings, store, progress))
    terms = step_terms(decoder, step, requests[0].chip, types, left_out)
    about = (requests[0], types.kept, rows, memory, settings or {}, terms, left_out, types.source)
    return ModelStep(decoder, step, *about)


def _chip(keys: Mapping[str, str], settings: Mapping[str, str] | None) -> Chip:
    """Return the chip of a step, which must be one that is timed."""
    on = chip_record(keys["chip"]).what_if(settings or {})
    require_timed(on)
    return on


def _types(decoder: Decoder, dtype: object, head_dtype: object) -> _Types:
    """Return the type of the products and of what keeps 16 bits, and the first one's source."""
    stored, field = decoder.stored_type, decoder.type_field
    stored_kind = None if stored is None else _type(stored, f"the config's {field}")
    if dtype is not None:
        kind, said = _type(dtype, "dtype"), "as asked"
        if stored_kind not in {None, kind}:
            said += f"; the config's {field} is {stored_kind}"
    elif stored_kind is not None:
        kind, said = stored_kind, f"the config's {field}"
    else:
        kind, said = DEFAULT_TYPE, "the config names no type"
    wide = stored_kind if stored_kind in _WIDE else DEFAULT_TYPE
    kept = kind if kind in _WIDE else wide
    if head_dtype is not None:
        kept = _type(head_dtype, "head_dtype")
    return _Types(kind, kept, said)


def _memory(
    decoder: Decoder, step: InferenceStep, types: _Types, on: Chip, *, force: bool
) -> CardMemory:
    """Return the memory of a step on a chip.

    Raises
    ------
    RequestError
        If it does not fit into the card, and is not forced.
    """
    fact = on.sources.get("gm_bytes")
    source = "" if fact is None else fact.source
    memory = card_memory(decoder, step, types.products, types.kept, on.gm_bytes, source)
    if memory.fits is False and not force:
        raise _too_large(memory, step, on)
    return memory


def _too_large(memory: CardMemory, step: InferenceStep, on: Chip) -> RequestError:
    """Return the refusal of a step that a card cannot hold, with what of it fits."""
    weights, cache, card = (
        f"{number((size or 0) / 2**30)} GiB" for size in (memory.weights, memory.cache, memory.card)
    )
    fit = memory.sequences(step.seq) if step.seq is not None else 0
    beside = f" and {cache} of cache" if memory.cache else ""
    most = f"{plural(fit, 'sequence')} of {step.seq:,} tokens fit" if fit else ""
    remedy = most or "raise --tp or --ep, or take a narrower --dtype"
    sentence = f"{weights} of weights{beside} exceed the {card} of {on.name}"
    return unable("memory", sentence, f"{remedy}; --force times it all the same")


def _type(given: object, subject: str) -> str:
    """Return our name of an element type, or a name of values with scales."""
    name = type_name(given)
    if not isinstance(name, str):
        raise refuse(subject, "be the name of an element type", type(given).__name__)
    return name if name in MX_FORMATS else element_type(name, subject).name


def _problem(product: StepProduct, kind: str) -> Json:
    """Return the keys of a matmul's problem: weights as a checkpoint has them."""
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
    """Yield each matmul with its plan; equal problems are planned once."""
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
