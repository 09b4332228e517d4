"""Collectives between cards by closed forms, with the rates that public pages give.

Of n bytes on p cards, each with rate B and latency L a step, after a start S:

    full mesh   all-reduce  S + 2 (L + n / (p B))           all cards send a p-th to each other at
                all-gather  S + L + n / (p B)               once, each pair by a link of its own
                all-to-all  S + L + n / (p B)
    ring        all-reduce  S + 2 (p - 1) (L + n / (p B))   every card sends to the next one
                all-gather  S + (p - 1) (L + n / (p B))
                all-to-all  S + (p - 1) (L + n / (p B))
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cubecore.models.decoder import Decoder, Experts
from cubecore.models.products import HEAD
from cubecore.models.step import InferenceStep
from cubecore.units import ceil_div

COLLECTIVES = "collectives"
"""The term of a step that collectives make."""
_RESULT_BYTES = 2
"""Bytes of an element that cards exchange."""
_PHASES = {"all-reduce": 2, "all-gather": 1, "all-to-all": 1}


@dataclass(frozen=True, slots=True)
class Links:
    """The connections of up to `cards` cards, and the source of these.

    `bytes_per_second` is the rate of a link in one direction, `latency_us` that of a step over it,
    `start_us` what a collective takes before and after its steps.
    """

    topology: str
    cards: int
    bytes_per_second: float
    latency_us: float
    start_us: float
    source: str

    def us(self, kind: str, size: int, cards: int) -> float:
        """Return the time of a collective of `size` bytes on so many cards."""
        turns = 1 if self.topology == "full mesh" else cards - 1
        each = self.latency_us + size / cards / self.bytes_per_second * 1e6
        return self.start_us + _PHASES[kind] * turns * each


_START = (
    "a start of 14.77 us: asc-devkit, tuning case of Matmul with AllReduce on 8 cards of A2, whose "
    "time for x MB is 14.77 us and more for the bytes"
)
LINKS: Mapping[str, tuple[Links, ...]] = {
    "A2": (
        Links(
            *("full mesh", 8, 18.4e9, 0.0, 14.77),
            f"{_START}; 18.4 GB/s a link: its 13.585 us for each MB of many",
        ),
    ),
    "A3": (
        Links(
            *("ring", 2, 224e9, 0.2, 14.77),
            f"{_START}; 224 GB/s and 0.2 us between the dies of a module: Ascend/msmodeling, "
            "comm_config_example.yaml",
        ),
        Links(
            *("ring", 384, 196e9, 0.5, 14.77),
            f"{_START}; 196 GB/s and 0.5 us between modules: Ascend/msmodeling, "
            "comm_config_example.yaml",
        ),
    ),
}
"""By family of chips: the links of so many cards, few first."""


@dataclass(frozen=True, slots=True)
class StepCollective:
    """One collective: what it does to how many bytes on how many cards, and how often."""

    name: str
    layers: str
    launches: int
    kind: str
    size_bytes: int
    cards: int


def step_collectives(decoder: Decoder, step: InferenceStep) -> tuple[StepCollective, ...]:
    """Return the collectives of a step, in the order in which a layer needs them."""
    return tuple(_collectives(decoder, step))


def _collectives(decoder: Decoder, step: InferenceStep) -> Iterator[StepCollective]:
    size = step.tokens * decoder.hidden * _RESULT_BYTES
    for kind in decoder.layers:
        names = ["attention's result"]
        if step.ep > 1 and isinstance(kind.block, Experts):
            away = ceil_div(size * min(kind.block.per_token, kind.block.count), step.tp)
            for name in ("tokens to experts", "tokens back"):
                yield StepCollective(name, kind.name, kind.count, "all-to-all", away, step.ep)
        else:
            names.append("the block's result")
        for name in names if step.tp > 1 else ():
            yield StepCollective(name, kind.name, kind.count, "all-reduce", size, step.tp)
    if step.tp > 1:
        logits = step.batch * decoder.vocab * _RESULT_BYTES
        yield StepCollective("logits", HEAD, 1, "all-gather", logits, step.tp)


def links_of(family: str | None, cards: int) -> Links | None:
    """Return the links of so many cards of a family; None where no page gives them."""
    known = LINKS.get(family or "", ())
    return next((one for one in known if cards <= one.cards), None)
