"""Gathers, scatters and counted squeezes against loops written from their pages."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.vector.registers.operation import Call
from cubecore.isa.vector.registers.operations.catalogue import operations
from cubecore.isa.vector.registers.operations.indexed import count_in

VL = 256
UB = np.random.default_rng(5).integers(1, 256, 4096, np.uint8)
BIT = np.arange(VL)
MASKS = {"all": BIT >= 0, "count": BIT < 100, "M3": BIT % 3 == 0, "none": BIT < 0}


def call_of(name, source, to, mode=""):
    return Call(operations()[name], element_type(to), element_type(source), mode)


def register_of(values, kind):
    register = np.zeros(VL, np.uint8)
    raw = np.asarray(values, kind).view(np.uint8)
    register[: raw.size] = raw
    return register[None]


def rows_of(name):
    return operations()[name].pairs


def picked(landing):
    """Return the bytes of UB that a load takes, 0 where it touches none."""
    rows = []
    for low, size in zip(landing.offsets[0], landing.sizes[0], strict=True):
        part = np.zeros(landing.unit, np.uint8)
        part[:size] = UB[low : low + size]
        rows.append(part)
    return np.concatenate(rows)[None]


@pytest.mark.parametrize("which", MASKS)
@pytest.mark.parametrize(("source", "to", "index"), rows_of("GatherUB"))
def test_gather_picks_elements(source, to, index, which):
    """A byte gets a lane of 16 bits with zeros above it, also where it is negative."""
    call, mask = call_of("GatherUB", source, to, index), MASKS[which]
    size, lane = element_type(source).size_bytes, element_type(to).size_bytes
    lanes = VL // lane
    kind = f"u{element_type(index).size_bytes}"
    indices = np.random.default_rng(7).integers(0, 4096 // size - 1, VL // int(kind[1]))
    inputs = [register_of(indices, kind)]
    landing = call.operation.lands(call, inputs, mask[None])
    on = [bool(mask[n * lane]) for n in range(lanes)]
    assert landing.offsets[0].tolist() == [int(indices[n]) * size for n in range(lanes)]
    assert landing.sizes[0].tolist() == [size if each else 0 for each in on]
    (made,) = call.operation.compute(call, [*inputs, picked(landing)], mask[None], None)
    wanted = b""
    for n in range(lanes):
        at = int(indices[n]) * size
        element = bytes(UB[at : at + size]) + bytes(lane - size)
        wanted += element if on[n] else bytes(lane)
    assert made[0].tobytes() == wanted


@pytest.mark.parametrize("which", MASKS)
@pytest.mark.parametrize("kind", ["uint8", "float16", "int64"])
def test_gather_picks_blocks(kind, which):
    """Eight indices in bytes; bits 0, 4, ... 28 of the mask govern them, whatever the type."""
    call, mask = call_of("GatherB", kind, kind), MASKS[which]
    indices = np.array([96, 0, 32, 4064, 32, 64, 128, 1024, 7, 7], np.uint32)
    inputs = [register_of(indices, np.uint32)]
    landing = call.operation.lands(call, inputs, mask[None])
    (made,) = call.operation.compute(call, [*inputs, picked(landing)], mask[None], None)
    blocks = [UB[at : at + 32] if mask[4 * n] else bytes(32) for n, at in enumerate(indices[:8])]
    assert made[0].tobytes() == b"".join(map(bytes, blocks))
    assert landing.sizes[0].tolist() == [32 if mask[4 * n] else 0 for n in range(8)]


@pytest.mark.parametrize("which", MASKS)
@pytest.mark.parametrize(("source", "to", "index"), rows_of("Scatter"))
def test_scatter_puts_elements(source, to, index, which):
    """Of bytes the even lanes are stored, each under the bit of its two bytes."""
    assert source == to
    call, mask = call_of("Scatter", source, to, index), MASKS[which]
    size = element_type(to).size_bytes
    lane = max(size, 2)
    kind = f"u{element_type(index).size_bytes}"
    indices = np.random.default_rng(8).permutation(VL // int(kind[1])) * 3
    register = UB[None, :VL]
    landing = call.operation.lands(call, [register, register_of(indices, kind)], mask[None])
    (values,) = call.operation.compute(call, [register, None], mask[None], None)
    memory, wanted = np.zeros(4096, np.uint8), np.zeros(4096, np.uint8)
    for n, (low, count) in enumerate(zip(landing.offsets[0], landing.sizes[0], strict=True)):
        part = values[0, n * landing.unit : (n + 1) * landing.unit]
        memory[low : low + count] = part[:count]
    for n in range(VL // lane):
        if mask[n * lane]:
            at = int(indices[n]) * size
            wanted[at : at + size] = UB[n * lane : n * lane + size]
    assert np.array_equal(memory, wanted)


@pytest.mark.parametrize("which", MASKS)
@pytest.mark.parametrize("kind", operations()["SqueezeCounted"].types)
def test_a_squeeze_counts_its_bytes(kind, which):
    call, mask = call_of("SqueezeCounted", kind, kind), MASKS[which]
    size = element_type(kind).size_bytes
    squeezed, counted = call.operation.compute(call, [UB[None, :VL]], mask[None], None)
    lanes = [bytes(UB[n : n + size]) for n in range(0, VL, size) if mask[n]]
    assert squeezed[0].tobytes() == b"".join(lanes).ljust(VL, b"\0")
    assert count_in(counted) == len(lanes) * size


def test_stores_by_ar_follow_each_other():
    """Each stores what the last squeeze has counted behind what was stored before."""
    by_name = operations()
    (ar,) = by_name["ClearSpr"].compute(None, [], None, None)
    call, end = call_of("StoreCounted", "float32", "float32"), 0
    for which in ("count", "M3", "none", "all"):
        squeeze = call_of("SqueezeCounted", "float32", "float32")
        _, counted = squeeze.operation.compute(squeeze, [UB[None, :VL]], MASKS[which][None], None)
        landing = call.operation.lands(call, [UB[None, :VL], counted, ar], None)
        assert landing.offsets.reshape(-1).tolist() == [end]
        end += 4 * sum(bool(MASKS[which][n]) for n in range(0, VL, 4))
        assert landing.offsets.item() + landing.sizes.item() == end
        (ar,) = by_name["AdvanceAR"].compute(None, [ar, counted], None, None)
        assert count_in(ar) == end


def test_a_mask_of_registers_has_a_bit_a_lane():
    """MASK0 has the first 64 bits; 16-bit lanes take MASK1's, too."""
    low, high = 0x8000_0000_0000_0005, 0x3
    scalar = np.array([[low, high]], np.uint64)
    bits = [(low | high << 64) >> n & 1 == 1 for n in range(128)]
    for kind, width in (("uint16", 2), ("uint32", 4)):
        call = call_of("MoveMask", kind, kind)
        (mask,) = call.operation.compute(call, [], None, scalar)
        assert mask[0].tolist() == [bits[n // width] for n in range(VL)]
