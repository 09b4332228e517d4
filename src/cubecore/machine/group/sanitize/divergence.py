"""Divergence: why cores of a group do not do the same, for one instruction or from there on."""

from collections.abc import Sequence


class DivergenceError(Exception):
    """Something that the cores of a group do one by one, or that has a finding.

    Nothing was changed yet. `followed`: the watch has seen the instruction.
    """

    def __init__(self, why: str, *, followed: bool = False) -> None:
        super().__init__(why)
        self.followed = followed


class UnlikeError(Exception):
    """An instruction that leaves cores of a group unlike each other; `kinds` tells them apart."""

    def __init__(self, why: str, kinds: Sequence[object]) -> None:
        super().__init__(why)
        self.kinds = kinds


class AgainError(Exception):
    """The launch is executed again, from its start, in another way."""


class DivergedGroupError(AgainError):
    """Cores of a group that were alike until here, and are no more."""


class UnevenError(AgainError):
    """Cores that lie at other distances in a tensor than before, and so have to be followed."""


class HaltedError(AgainError):
    """Cores that end by an exception, or never: others come less far than they have executed."""


class EachError(AgainError):
    """A finding that may be some cores' only: the launch is replayed core by core."""


class UnorderedError(EachError):
    """Bytes that two cores touch in no order, so that the result may depend on it, too."""
