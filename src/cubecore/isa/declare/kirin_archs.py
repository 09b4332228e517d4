"""Kirin X90 (3003) and Kirin 9030 (3113): what their pages say of an instruction of arch 2201.

The basic API's pages name both chips among their products, with the element types that each move
takes there. No page describes the chips' instructions themselves: what a call means is taken to be
what its instruction means on 2201.
"""

from typing import NamedTuple

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
