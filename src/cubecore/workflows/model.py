"""model: a step of a language model: its products, planned and timed, and its other terms."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cubecore.aliases import Json, JsonMapping
from cubecore.answers.model import ModelStep, PlannedProduct
from cubecore.chips import chip as chip_record
from cubecore.chips import default_chip
from cubecore.dtypes import element_type, type_name
from cubecore.errors import refuse
from cubecore.kernels.runnable import require_timed
from cubecore.models.decoder import Decoder
from cubecore.models.families import read_decoder
from cubecore.models.products import StepProduct, step_products
from cubecore.models.step import InferenceStep
from cubecore.tiling.model.problem import MX_FORMATS
from cubecore.tiling.model.request import TilingRequest
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.workflows.operators.step_terms import StepTypes, require_terms, step_terms
from cubecore.workflows.request import make_request
from cubecore.workflows.sweep.plan_many import plan_many

if TYPE_CHECKING:
    from cubecore.answers.plan import QueryAnswer

DEFAULT_TYPE = "bfloat16"
_WIDE = ("float16", "bfloat16", "float32")
"""Types in which a product leaves its result; narrower ones leave 16 bits."""
_DEQUANTISED = MappingProxyType({"int8": "VDEQF16", "int4": "VDEQF16"})
"""Modes of fixpipe that make float16 of integer products with a scale for each column."""


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
        Hugging Face's ``config.json``, its folder, its fields, or transformers' configuration.
    phase, batch, seq : str, int, int or None
        ``prefill`` or ``decode``, sequences, and the tokens of each or the context of a decode.
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
    types, left_out = _types(dtype, head_dtype), require_terms(without)
    keys = {"chip": chip or default_chip(), "format_b": format_b}
    decoder, step = read_decoder(config), InferenceStep(phase, batch, seq, tp, ep)
    planned = _planned_step(decoder, step, types, keys, settings, store, progress)
    terms = step_terms(decoder, step, planned.request.chip, types, left_out)
    return replace(planned, terms=terms, without=left_out)


def _planned_step(
    decoder: Decoder,
    step: InferenceStep,
    types: StepTypes,
    keys: Mapping[str, str],
    settings: Mapping[str, str] | None,
    store: str | None,
    progress: Callable[[int], None],
) -> ModelStep:
    """Plan every product of a step; `keys` of a problem are those that all have in common."""
    require_timed(chip_record(keys["chip"]).what_if(settings or {}))
    products = step_products(decoder, step)
    problems = [
        {**keys, **_problem(product, types.kept if product.kept else types.products)}
        for product in products
    ]
    requests = [make_request(problem, settings, {}) for problem in problems]
    rows = tuple(_planned(products, requests, settings, store, progress))
    return ModelStep(decoder, step, requests[0], requests[-1].problem.a, rows, settings or {})


def _types(dtype: object, head_dtype: object) -> StepTypes:
    """Return the type of the products, and of those that keep 16 bits."""
    kind = _type(dtype, "dtype")
    kept = _kept_type(kind) if head_dtype is None else _type(head_dtype, "head_dtype")
    return StepTypes(kind, kept)


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
