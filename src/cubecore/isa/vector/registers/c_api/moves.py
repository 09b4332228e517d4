"""Names of the C API for loads and stores: families of distributions, streams, strided blocks."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cubecore.isa.vector.registers.operation import Form

MOVED: Mapping[Form, str] = MappingProxyType(
    {
        Form.LOAD: "V dst, p src, n stride",
        Form.LOAD_PAIR: "V dst0, V dst1, p src, n stride",
        Form.LOAD_MASK: "M dst, p src, n bytes",
        Form.STORE: "p dst, v src, n stride, m mask",
        Form.STORE_MASK: "p dst, m src, n bytes",
    }
)
"""The parameters of names with ``_postupdate``, which move the pointer; a pair's store has none."""


@dataclass(frozen=True, slots=True)
class MoveFamily:
    """A family of loads or stores that C names alike: at a pointer, behind it, and moving it.

    `name` stands between the function and ``_postupdate``, `after` behind that.
    """

    operation: str
    name: str
    mode: str
    after: str = ""
    signatures: tuple[str, ...] = ()
    moved: str = ""

    @property
    def function(self) -> str:
        """The function that the family's names begin with."""
        return "asc_loadalign" if self.operation.startswith("Load") else "asc_storealign"


_FIRST = "p dst, v src", "p dst, v src, n distance"
MOVES = (
    *(
        MoveFamily("LoadAlign", name, mode, after)
        for name, mode, after in (
            ("", "NORM", ""),
            ("_brc_elem", "BRC_B{lane}", ""),
            ("_brc_datablock", "BLK", ""),
            ("_brc_elem2datablock", "E2B_B{lane}", ""),
            ("_upsample", "US_B{lane}", ""),
            ("_downsample", "DS_B{lane}", ""),
            ("_unpack", "UNPACK_B{element}", ""),
            ("_unpack4", "UNPACK4_B8", ""),
            ("_brc", "BRC_B{lane}", ""),
            ("_brc", "BLK", "_v2"),
            ("_brc", "E2B_B{lane}", "_v3"),
            ("_unpack", "UNPACK4_B8", "_v2"),
        )
    ),
    *(
        MoveFamily("StoreAlign", name, mode, after)
        for name, mode, after in (
            ("", "NORM", ""),
            ("_pack", "PACK_B{lane}", ""),
            ("_pack_quarter", "PACK4_B32", ""),
            ("_pack", "PACK4_B32", "_v2"),
        )
    ),
    MoveFamily("StoreAlign", "_1st", "FIRST_ELEMENT_B{lane}", "", _FIRST, "p dst, v src, n stride"),
    MoveFamily("LoadPair", "_deintlv", "DINTLV_B{lane}"),
    MoveFamily("StorePair", "_intlv", "INTLV_B{lane}"),
    *(
        MoveFamily("LoadMask", name, mode)
        for name, mode in (("", "MASK_NORM"), ("_upsample", "MASK_US"), ("_downsample", "MASK_DS"))
    ),
    *(
        MoveFamily("StoreMask", name, mode)
        for name, mode in (("", "MASK_NORM"), ("_pack", "MASK_PACK"))
    ),
)
"""Aligned loads and stores; names with a number are older ones."""
STREAMS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "asc_load": ("LoadAlign", "V dst, p src"),
        "asc_loadunalign_pre": ("LoadUnAlignPre", "u buffer, p src"),
        "asc_loadunalign": ("LoadAlign", "V dst, u buffer, p src"),
        "asc_loadunalign_postupdate": ("LoadAlign", "V dst, u buffer, p src, n stride"),
    }
)
"""Loads that begin anywhere, with their instruction and their parameters."""
STREAM_STORES: tuple[tuple[str, str, str], ...] = (
    ("asc_store", "StoreAlign", "p dst, v src"),
    ("asc_store", "StoreAlign", "p dst, v src, n count"),
    ("asc_storeunalign", "StoreAlign", "p dst, u buffer, v src, n count"),
    ("asc_storeunalign_postupdate", "StoreAlign", "p dst, u buffer, v src, n count"),
    ("asc_storeunalign_postupdate", "StoreCounted", "p dst, u buffer, v src"),
    ("asc_storeunalign_postupdate", "StoreMask", "p dst, u buffer, m src"),
    ("asc_storeunalign_post", "StoreUnAlignPost", "p dst, u buffer, n count"),
    ("asc_storeunalign_post", "StoreUnAlignPost", "p dst, u buffer"),
    ("asc_storeunalign_post_postupdate", "StoreUnAlignPost", "p dst, u buffer, n count"),
)
"""Stores that begin anywhere, likewise."""
BLOCK_MOVES: tuple[tuple[str, str, str], ...] = tuple(
    (f"{function}{ending}", operation, f"{ends}, n block_stride, n repeat_stride, m mask")
    for function, operation, ends in (
        ("asc_loadalign", "LoadBlock", "V dst, p src"),
        ("asc_storealign", "StoreBlock", "p dst, v src"),
    )
    for ending in ("", "_postupdate")
)
"""Moves of eight blocks of 32 bytes with a stride, likewise."""
