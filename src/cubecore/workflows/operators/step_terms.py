"""Terms of a step beside its matmuls: operators that are timed, collectives by closed forms."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from cubecore.advice.intervals import ATTENTION, ATTENTION_LIBRARY, interval
from cubecore.aliases import Json
from cubecore.answers.operators import LAUNCHES, TERMS, TermRow
from cubecore.chips.model import Chip
from cubecore.dtypes import element_type
from cubecore.errors import CubecoreError, did_you_mean, refuse
from cubecore.kernels.operators.attention.shape import BLOCK, ROWS
from cubecore.kernels.operators.named import operator_of
from cubecore.models.collectives import COLLECTIVES, links_of, step_collectives
from cubecore.models.decoder import Decoder
from cubecore.models.operators import StepOperator, step_operators
from cubecore.models.products import FUSED, step_products
from cubecore.models.step import BETWEEN_LAUNCHES_US, InferenceStep
from cubecore.timing.critical_path import START_UP
from cubecore.timing.records import Timeline

_FEW_KEYS = 8
"""Blocks of keys from which attention is continued in proportion."""
_MOST_BLOCKS = 64
"""Blocks of keys of an AI Core that are timed as they are."""
CONTINUED = "attention of many keys and queries is timed on fewer, and continued in proportion"


@dataclass(frozen=True, slots=True)
class StepTypes:
    """The element types of a step: of its matmuls, and of what keeps 16 bits."""

    products: str
    kept: str


def require_terms(names: Sequence[str]) -> frozenset[str]:
    """Return the terms that are left out.

    Raises
    ------
    RequestError
        If one is no term.
    """
    for name in names:
        if name not in TERMS:
            raise refuse("without", f"be {', '.join(TERMS)}", repr(name), did_you_mean(name, TERMS))
    return frozenset(names)


def step_terms(
    decoder: Decoder,
    step: InferenceStep,
    chip: Chip,
    types: StepTypes,
    without: frozenset[str],
) -> tuple[TermRow, ...]:
    """Return a step's operators and collectives, but for the terms that are left out."""
    kept = types.kept
    rows: list[TermRow] = []
    timer = cache(lambda op, extents: _timed(op, extents, kept, chip))
    for one in step_operators(decoder, step, quantised=types.products != kept):
        if one.term in without:
            continue
        row = _row(one)
        if not one.missing:
            row = replace(row, **timer(one.op, one.extents))
            if row.us is not None:
                row = replace(row, us=row.us * one.scale)
            row = replace(row, assumed=(*row.assumed, *([one.assumed] if one.assumed else [])))
        if row.us is not None:
            bits = element_type(kept).bits
            group = ATTENTION_LIBRARY if one.op == ATTENTION else "operator"
            row = replace(row, interval=interval(row.us, chip.arch, group, bits, one.op))
        rows.append(row)
    if COLLECTIVES not in without:
        rows += _collectives(decoder, step, chip)
    if LAUNCHES not in without:
        rows.append(_between(decoder, step, rows))
    return tuple(rows)


def _between(decoder: Decoder, step: InferenceStep, rows: Sequence[TermRow]) -> TermRow:
    """Return the time between the launches of a step: of fused matmuls, and of all terms."""
    products = (one.launches for one in step_products(decoder, step) if FUSED in one.variants)
    count = sum(products) + sum(row.launches for row in rows)
    assumed = f"a graph's launches are {BETWEEN_LAUNCHES_US:g} us apart, fitted on published steps"
    named = (LAUNCHES, "between launches", "step", count, "launch gap", ())
    return TermRow(*named, BETWEEN_LAUNCHES_US, assumed=(assumed,), bound="launches")


def _row(one: StepOperator) -> TermRow:
    error = one.missing or None
    named = (one.term, one.name, one.layers, one.launches)
    return TermRow(*named, one.op, one.extents, None, error)


def _collectives(decoder: Decoder, step: InferenceStep, chip: Chip) -> Iterator[TermRow]:
    family = next((name for name in chip.products if name in {"A2", "A3"}), None)
    for one in step_collectives(decoder, step):
        links = links_of(family, one.cards)
        named = (COLLECTIVES, one.name, one.layers, one.launches, one.kind)
        extents = (one.size_bytes, one.cards)
        if links is None:
            error = f"no page gives the links of {one.cards} cards of {chip.name}"
            yield TermRow(*named, extents, None, error)
            continue
        us = links.us(one.kind, one.size_bytes, one.cards)
        assumed = f"collectives by a {links.topology}: {links.source}"
        yield TermRow(*named, extents, us, assumed=(assumed,), bound="links")


def _timed(op: str, extents: tuple[int, ...], kept: str, chip: Chip) -> Json:
    """Return the time of an operator as fields of its row."""
    try:
        if op == "attention":
            return _attention(extents, kept, chip)
        line = operator_of(op, extents, kept).timed(chip)
        return {"us": line.us, "bound": _bound(line)}
    except CubecoreError as error:
        return {"error": str(error).replace("\n", "; ")}


def _bound(line: Timeline) -> str:
    """Return what holds an operator's time: what limits it, or of cores that wait its busiest pipe.

    The scalar unit's cycles hold the start-up and the waits.
    """
    if line.limited_by in {START_UP, *line.pipes}:
        return line.limited_by
    pipes = {pipe: busy for pipe, busy in line.pipes.items() if pipe.split()[-1] != "S"}
    return max(pipes, key=lambda pipe: pipes[pipe])


def _attention(extents: tuple[int, ...], kept: str, chip: Chip) -> Json:
    """Return the time of attention: of all blocks, or of fewer, continued in proportion."""
    heads, queries, keys, width = extents
    cores = chip.require("aic_count", "attention")
    rows = min(queries, ROWS)
    blocks = max(-(-heads * (queries // rows) // cores), 1)
    key_blocks = max(-(-keys // BLOCK), 1)
    if blocks * key_blocks <= _MOST_BLOCKS:
        line = operator_of("attention", extents, kept).timed(chip)
        return {"us": line.us, "bound": _bound(line)}

    def timed(rows_each: int, some_keys: int) -> Timeline:
        together = min(heads, cores)
        some = (together, rows * rows_each * max(cores // together, 1), some_keys, width)
        if queries <= ROWS:
            some = (rows_each * together, rows, some_keys, width)
        return operator_of("attention", some, kept).timed(chip)

    few = min(key_blocks, _FEW_KEYS) * BLOCK if key_blocks > 1 else keys
    first = timed(1, few)
    twice = timed(2, few)
    of_rows = twice.us - first.us
    more_keys = (key_blocks - few // BLOCK) / (few // BLOCK) if keys > few else 0.0
    of_keys = timed(1, 2 * few).us - first.us if more_keys else 0.0
    both = of_rows + of_keys * more_keys
    us = first.us + of_keys * more_keys + (blocks - 1) * both
    return {"us": us, "assumed": (CONTINUED,), "bound": _bound(twice)}
