"""Loads and stores by their distributions, against loops written from their pages."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.vector.registers.operation import Call
from cubecore.isa.vector.registers.operations.catalogue import operations
from cubecore.isa.vector.registers.operations.moves import LOADS, STORES

VL = 256
UB = np.random.default_rng(11).integers(1, 256, 2 * VL, np.uint8)
WIDTHS = {"B8": 1, "B16": 2, "B32": 4, "B64": 8}


def elements(data, width):
    return [bytes(data[n : n + width]) for n in range(0, len(data), width)]


def loaded(dist):
    """Return the bytes that are read, the alignment, and the register."""
    name, _, kind = dist.rpartition("_")
    width = WIDTHS.get(kind, 0)
    if dist == "NORM":
        return 256, 32, bytes(UB[:256])
    if dist == "BLK":
        return 32, 32, bytes(UB[:32]) * 8
    if name == "BRC":
        return width, width, bytes(UB[:width]) * (VL // width)
    if name == "E2B":
        used = elements(UB[: 8 * width], width)
        return 8 * width, 8 * width, b"".join(one * (32 // width) for one in used)
    if name == "US":
        return 128, 32, b"".join(one * 2 for one in elements(UB[:128], width))
    if name == "DS":
        return 512, 32, b"".join(elements(UB, width)[::2])
    if name == "UNPACK":
        return 128, 32, b"".join(one + bytes(width) for one in elements(UB[:128], width))
    assert dist == "UNPACK4_B8", dist
    return 64, 32, b"".join(one + bytes(3) for one in elements(UB[:64], 1))


LOAD_NAMES = [
    *("NORM", "BLK", "BRC_B8", "BRC_B16", "BRC_B32", "E2B_B16", "E2B_B32", "US_B8", "US_B16"),
    *("DS_B8", "DS_B16", "UNPACK_B8", "UNPACK_B16", "UNPACK_B32", "UNPACK4_B8"),
]


def run(name, parts, mode, kind="uint8", mask=None):
    element = element_type(kind)
    call = Call(operations()[name], element, element, mode)
    return operations()[name].compute(call, parts, mask, None)


@pytest.mark.parametrize("dist", LOAD_NAMES)
def test_loads(dist):
    span, align, register = loaded(dist)
    assert (LOADS[dist].span, LOADS[dist].align) == (span, align)
    assert run("LoadAlign", [UB[None, :span]], dist)[0].tobytes() == register


@pytest.mark.parametrize("kind", ["B8", "B16", "B32"])
def test_loads_of_two_registers(kind):
    dist, parts = f"DINTLV_{kind}", elements(UB, WIDTHS[kind])
    assert (LOADS[dist].span, LOADS[dist].align) == (512, 32)
    even, odd = run("LoadPair", [UB[None]], dist)
    assert even.tobytes() == b"".join(parts[::2])
    assert odd.tobytes() == b"".join(parts[1::2])


def stored(dist, kind):
    """Return the bytes that are written, by place, each with the lane that governs it."""
    name, _, width = dist.rpartition("_")
    own = element_type(kind).size_bytes
    if name == "FIRST_ELEMENT":
        return [(n, UB[n], None) for n in range(WIDTHS[width])], WIDTHS[width]
    if name == "PACK":
        wide = WIDTHS[width]
        narrow = wide // 2
    elif dist == "PACK4_B32":
        wide, narrow = 4, 1
    else:
        wide = narrow = WIDTHS.get(width, own)
    lanes = [(lane, byte) for lane in range(VL // wide) for byte in range(narrow)]
    return [(l * narrow + b, UB[l * wide + b], l * wide) for l, b in lanes], 32


STORE_NAMES = [
    *("NORM", "NORM_B8", "NORM_B16", "NORM_B32", "FIRST_ELEMENT_B8", "FIRST_ELEMENT_B16"),
    *("FIRST_ELEMENT_B32", "PACK_B16", "PACK_B32", "PACK_B64", "PACK4_B32"),
]


@pytest.mark.parametrize("which", ["all", "count", "M3"])
@pytest.mark.parametrize("kind", ["uint8", "float16", "float32"])
@pytest.mark.parametrize("dist", STORE_NAMES)
def test_stores(dist, kind, which):
    """Lane i keeps place i, and a lane without its lowest bit is not written."""
    bit = np.arange(VL)
    mask = {"all": bit >= 0, "count": bit < 100, "M3": bit % 3 == 0}[which]
    rows, align = stored(dist, kind)
    distribution = STORES[dist]
    assert (distribution.span, distribution.align) == (len(rows), align)
    packed = run("StoreAlign", [UB[None, :VL]], dist, kind)[0][0]
    assert packed.tolist() == [byte for _, byte, _ in rows]
    if distribution.masked is None:
        assert dist.startswith("FIRST")
        return
    written = distribution.masked(mask[None], element_type(kind).size_bytes)[0]
    assert written.tolist() == [bool(mask[lane]) for _, _, lane in rows]


@pytest.mark.parametrize("kind", ["B8", "B16", "B32"])
def test_stores_of_two_registers(kind):
    dist, width = f"INTLV_{kind}", WIDTHS[kind]
    a, b = elements(UB[:VL], width), elements(UB[VL:], width)
    assert (STORES[dist].span, STORES[dist].align, STORES[dist].masked) == (512, 32, None)
    made = run("StorePair", [UB[None, :VL], UB[None, VL:]], dist)[0]
    assert made.tobytes() == b"".join(x + y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("block", range(8))
def test_a_strided_load_takes_blocks_with_an_active_lane(block):
    before = np.arange(VL, dtype=np.uint8)[None]
    for active in (True, False):
        mask = np.zeros((1, VL), bool)
        mask[0, 32 * block + 28] = active
        made = run("LoadBlock", [before, UB[None, :32]], f"BLOCK{block}", "float32", mask)[0][0]
        wanted = before[0].copy()
        wanted[32 * block : 32 * block + 32] = UB[:32] if active else 0
        assert made.tolist() == wanted.tolist()


def bits(data):
    return [bool(byte >> n & 1) for byte in data for n in range(8)]


def test_masks_are_loaded_and_stored():
    whole = bits(UB[:64])
    for dist, span, align, wanted in (
        ("MASK_NORM", 32, 32, whole[:256]),
        ("MASK_US", 16, 16, [bit for bit in whole[:128] for _ in range(2)]),
        ("MASK_DS", 64, 32, whole[::2]),
    ):
        assert (LOADS[dist].span, LOADS[dist].align) == (span, align)
        assert run("LoadMask", [UB[None, :span]], dist)[0][0].tolist() == wanted
    mask = np.array([whole[:256]])
    for dist, span, align, wanted in (
        ("MASK_NORM", 32, 32, whole[:256]),
        ("MASK_PACK", 16, 16, whole[:256:2]),
    ):
        assert (STORES[dist].span, STORES[dist].align) == (span, align)
        assert bits(run("StoreMask", [mask], dist)[0][0].tolist()) == wanted
