"""Architectures beside 2201 and 3510 that take its instructions, and what their pages say of one.

The AI Cores before arch 2201 are programmed in TIK, whose public pages name the chips that each
call exists on ("where a chip is not named, the call exists from 310 on"). A declaration says since
which of them its instruction exists.

Kirin X90 (3003) and Kirin 9030 (3113): the basic API's pages name both chips among their products,
with the element types that each move takes there. No page describes the chips' instructions
themselves.

What a call means on either is taken to be what its instruction means on 2201, where the pages say
no other.
"""

from typing import NamedTuple

EARLIER_ARCHS = ("m100", "1001", "2002")
"""The earlier architectures: an instruction that one has, the later ones have too."""


def from_on(since: str) -> tuple[str, ...]:
    """Return the earlier architectures from one on; of none, none.

    Examples
    --------
    >>> from_on("1001"), from_on("")
    (('1001', '2002'), ())
    """
    return EARLIER_ARCHS[EARLIER_ARCHS.index(since) :] if since else ()


Types = tuple[str, ...]
X90, K9030 = "3003", "3113"
BYTES: Types = ("int8", "uint8", "int16", "uint16", "float16")
SUMS: Types = ("float16", "float32", "int32")
HALF: Types = ("float16",)
HALF_OR_BYTE: Types = ("int8", "float16")
ON_X90_ALONE = None
"""The types of an instruction that Kirin 9030 lacks."""
_SAME = "Kirin X90 and 9030: taken to be as on 2201, of which alone the page has the details"
HALF_SUMS = (
    "Kirin: Mmad sums halves into L0C as half, and Fixpipe's tables of types have float and int32 "
    "alone: half is taken to be written as it is"
)
NO_BIAS_COPY = (
    "Kirin X90: Mmad takes a bias in C2, and the page of the copy to C2 excludes the chip: it is "
    "taken to exist there"
)
NO_TRANSPOSE = (
    "Kirin 9030: the page excludes the chip; for half it is what LoadData does with ifTranspose, "
    "which it has"
)
REPEATS = (
    "Kirin X90: the page of the 3D load names the chip, and those of its repetition and its "
    "boundary do not: it is taken to run once, without a boundary"
)
BYTES_NOT_FILLED = (
    "Kirin X90: the page also gives int8, whose value no instruction of 2201 takes: it is left out"
)


class Kirin(NamedTuple):
    """The element types that a template takes on each chip, and what is inferred of it there.

    Without types its own hold; None says that the chip lacks it.
    """

    x90: Types | None = ()
    k9030: Types | None = ()
    note: str = ""
    inferred: bool = True

    @property
    def types(self) -> dict[str, Types]:
        """The types by the architectures that have the instruction."""
        both = {X90: self.x90, K9030: self.k9030}
        return {arch: types for arch, types in both.items() if types is not None}

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences on what is inferred."""
        return tuple(note for note in (_SAME, self.note) if note) if self.inferred else ()
