"""A step of a model as the user states it: phase, tokens, cards."""

from dataclasses import dataclass

from cubecore.errors import RequestError, Violation, refuse
from cubecore.tiling.model.epilogue import is_integer, wrong
from cubecore.units import INT32_MAX

PHASES = ("prefill", "decode")
BETWEEN_LAUNCHES_US = 1.0
"""The time between two launches of a graph. Uncertain: no page gives it; it is fitted on the four
decode steps that cann-recipes-infer publishes of Qwen3-8B (models/qwen, README)."""


@dataclass(frozen=True, slots=True)
class InferenceStep:
    """One step of a model on one of several cards.

    `batch` sequences go through `tp` cards that divide heads and widths. In ``prefill`` each brings
    `seq` tokens; in ``decode`` one, behind a context of `seq`, on which no matmul depends.
    `ep` cards divide the experts, 1 where each card has a part of every expert; as many groups of
    `tp` cards as that makes bring tokens to them.

    Raises
    ------
    RequestError
        One violation for each value out of its domain.
    """

    phase: str
    batch: int
    seq: int | None = None
    tp: int = 1
    ep: int = 1

    def __post_init__(self) -> None:
        wrongs = []
        if self.phase not in PHASES:
            wrongs.append(Violation("phase", "be prefill or decode", repr(self.phase)))
        for name in ("batch", "seq", "tp", "ep"):
            value = getattr(self, name)
            if value is None and name == "seq":
                continue
            if not is_integer(value):
                wrongs.append(wrong(name, "be an integer", value))
            elif not 1 <= value <= INT32_MAX:
                wrongs.append(Violation(name, f"be from 1 to {INT32_MAX}", str(value)))
        if self.phase == "prefill" and self.seq is None:
            wrongs.append(Violation("seq", "be given for a prefill", "nothing"))
        if wrongs:
            raise RequestError(wrongs)
        if self.ep > 1 and self.ep % self.tp:
            raise refuse("ep", f"be 1 or a multiple of tp = {self.tp}", self.ep)
        if self.tokens > INT32_MAX:
            raise refuse("batch x seq", f"be at most {INT32_MAX}", self.tokens)

    @property
    def tokens(self) -> int:
        """Tokens that the group's cards compute: the rows of every matmul but the head's."""
        return self.batch * (self.seq or 1) if self.phase == "prefill" else self.batch
