"""The form with a count: what it issues, where it reads and writes, the mask that it leaves."""

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.vector.common.forms import counted
from cubecore.isa.vector.common.repeated import Repeated
from isa import vector_rows
from isa.bench import Bench

MASKED = sorted(name for name, kind in instructions().items() if issubclass(kind, Repeated))
HALVES = {"vconv_deqs162b8", "vconv_vdeqs162b8"}
"""They fill one half of dst's blocks."""
INT16, FLOAT = element_type("int16"), element_type("float32")


def offsets_of(template, count):
    """The offsets of the operands that have strides, as the count's mask takes them."""
    bench = Bench(1)
    set_count, set_mask, dense, _ = counted(template, count)
    bench.do(set_count)
    bench.do(set_mask)
    resolved = dense.resolved(bench.core.registers)
    return {
        operand.name: resolved.offsets(operand.name).ravel().tolist()
        for operand in resolved.operands()
        if hasattr(resolved, f"{operand.name}_repeat_stride")
    }


@pytest.mark.parametrize("name", MASKED)
def test_no_gaps(name):
    """Whatever the strides were, element i of every operand is at i."""
    kind = instructions()[name]
    strides = {f: 3 for f in kind.__dataclass_fields__ if f.endswith("_stride")}
    template = kind(**{**vector_rows.EXAMPLES[name], **strides, "repeat": 9})
    found = offsets_of(template, 1000)
    assert found
    for operand, offsets in found.items():
        dense = list(range(len(offsets)))
        if name in HALVES and operand == "dst":
            dense = [i // 16 * 32 + 16 + i % 16 for i in dense]
        assert offsets == dense, operand


@pytest.mark.parametrize(
    ("name", "lanes", "dst", "src"),
    [
        *(("vconv_f322f16", 64, 4, 8), ("vconv_f162f32", 64, 8, 4), ("vconv_f322s64", 32, 8, 4)),
        *(("vconv_f162s8", 128, 4, 8), ("vconv_f162s4", 128, 2, 8), ("vconv_f322s32", 64, 8, 8)),
    ],
)
def test_strides_of_types_of_other_widths(name, lanes, dst, src):
    """The wider type fills 8 blocks with a repeat, the narrower as many as its lanes take."""
    _, _, dense, _ = counted(instructions()[name](**vector_rows.EXAMPLES[name]), 1)
    assert (dense.width, dense.dst_repeat_stride, dense.src_repeat_stride) == (lanes, dst, src)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000, 40000])
def test_it_takes_count_elements(count):
    """Also more than 255 repeats have; nothing else changes."""
    bench = Bench(1, seed=95)
    bench.noise(Mem.UB, written=True)
    expected = bench.image(Mem.UB)
    for i in range(count):
        word = int.from_bytes(expected.get(4 * i, 4), "little")
        expected.put(4 * i, (~word & 0xFFFFFFFF).to_bytes(4, "little"))
    for step in counted(instructions()["vnot"](dtype=INT16), 2 * count):
        bench.do(step, *((0, 0) if step.name == "vnot" else ()))
    assert bench.messages == []
    bench.check(Mem.UB, expected)


def test_the_count_stays_in_the_mask():
    """100 = 0b1100100: the next call with strides works on lanes 2, 5 and 6, without a finding."""
    bench = Bench(1, seed=96)
    bench.noise(Mem.UB, written=True)
    vnot = instructions()["vnot"](dtype=INT16)
    for step in counted(vnot, 100):
        bench.do(step, *((0, 0) if step.name == "vnot" else ()))
    expected = bench.image(Mem.UB)
    for lane in (2, 5, 6):
        at = 4096 + 2 * lane
        value = int.from_bytes(expected.get(at, 2), "little")
        expected.put(at, (~value & 0xFFFF).to_bytes(2, "little"))
    bench.do(vnot, 4096, 4096)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


def test_a_count_of_0_leaves_an_empty_mask():
    bench = Bench(1)
    bench.noise(Mem.UB, written=True)
    vnot = instructions()["vnot"](dtype=INT16)
    for step in counted(vnot, 0):
        bench.do(step, *((0, 0) if step.name == "vnot" else ()))
    bench.do(vnot, 0, 0)
    assert bench.messages == [
        "parameter: vnot: the vector mask must have an active lane, got all lanes off"
    ]
