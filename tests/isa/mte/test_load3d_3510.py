"""Image to column of architecture 3510, against the same walk over the map; L0A holds NZ."""

import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.load3d import SetFmatrixB, SetL3dPadding
from cubecore.isa.mte.load3d_3510 import Img2colv2CbufToCaV2, Img2colv2CbufToCbV2, SetL3dRptV2
from isa.bench import Bench
from isa.mte.test_load3d import PAD, Map, Sink, expanded, get, maps, whole, window
from parts import crossed

A5 = chip("Ascend950PR_9599")
BITS = {"int8": 8, "uint8": 8, "float8_e4m3fn": 8, "float8_e5m2": 8, "float16": 16}
BITS |= {
    "hifloat8": 8,
    "bfloat16": 16,
    "int16": 16,
    "uint16": 16,
    "int32": 32,
    "uint32": 32,
    "float32": 32,
}
SINKS = [
    *((Img2colv2CbufToCaV2, Mem.L0A, dtype) for dtype in BITS),
    *((Img2colv2CbufToCbV2, Mem.L0B, dtype) for dtype in BITS),
]
every_sink = pytest.mark.parametrize("sink", SINKS, ids=lambda s: f"{s[0].name} {s[2]}")


def run(sink_of, m: Map, p: dict, *, pad: int | None = PAD, rpt=(0, 1, 0), apart=0):
    """Execute and compare all of L0: element (i, j) of the windows, with K along `k`.

    Parts of K, C0 wide, lie `apart` more fractals apart than they must.
    """
    kind, mem, dtype = sink_of
    bits = BITS[dtype]
    c0 = 256 // bits
    bench = Bench(seed=m.h * m.w + m.c, on=A5)
    bench.noise(Mem.L1, mem)
    source, expected = bench.image(Mem.L1), bench.image(mem)
    sink = Sink(expected, bits)
    found, rows, columns = window(m, p, bits, rpt)
    turned = mem is Mem.L0B or bool(p.get("transpose"))
    stride = -(-(columns if turned else rows) // 16) + apart
    for (i, j), place in found.items():
        k, across = (i, j) if turned else (j, i)
        to = (k // c0 * stride + across // 16) * 16 * c0 + across % 16 * c0 + k % c0
        if place is None:
            word = (0 if pad is None else pad) & (1 << bits) - 1
            known = [int(pad is not None)] * (bits // 8)
            sink.put(512, to, (1 << bits) - 1 if pad is None else word, known)
        else:
            sink.put(512, to, *get(source, 96, place, bits))
    bench.do(m.describe())
    if pad is not None:
        bench.do(SetL3dPadding(config=pad))
    repeats = {"rpt_stride": rpt[0], "rpt_time": rpt[1], "rpt_mode": rpt[2]}
    bench.do(SetL3dRptV2(**repeats, dst_stride=max(stride, 1)))
    bench.do(kind(dtype=element_type(dtype), **m.fields(), **p), 512, 96)
    assert bench.messages == []
    bench.check(mem, expected)


@every_sink
@pytest.mark.thinned(8)
def test_windows_of_the_expanded_matrix(sink):
    """Whole matrices of every layout of channels, and parts of one."""
    bits = BITS[sink[2]]
    c0 = 256 // bits
    for number, m in enumerate(maps(c0, bits)):
        run(sink, m, whole(m, c0), apart=number % 3)
    m = maps(c0, bits)[1]  # 35 x 9 C0
    for p in (
        {"m_extension": 16, "k_extension": c0, "m_start_pt": 16, "k_start_pt": 4 * c0},
        {"m_extension": 3, "k_extension": 2 * c0, "m_start_pt": 32, "k_start_pt": c0},
        {"m_extension": 20, "k_extension": 5, "m_start_pt": 16, "k_start_pt": 8 * c0},
    ):
        run(sink, m, p, apart=1)


@every_sink
@pytest.mark.thinned(4)
def test_transposed_windows(sink):
    """On the way to L0B the flag changes nothing; 8 bits turn as others do."""
    c0 = 256 // BITS[sink[2]]
    for m in (Map(4, 8, 3 * c0), Map(5, 7, c0, kh=3, kw=1, pads=(1, 1, 1, 1))):
        run(sink, m, whole(m, c0) | {"transpose": True})
        p = {"m_extension": 16, "k_extension": c0, "k_start_pt": c0, "transpose": True}
        run(sink, m, p, apart=2)


REPEATS = [(1, 2, 0), (2, 2, 0), (0, 3, 0), (1, 2, 1), (3, 2, 1), (5, 0, 0)]


@pytest.mark.parametrize(
    ("sink", "rpt"),
    crossed(SINKS, REPEATS, every=5),
    ids=lambda s: f"{s[0].name} {s[2]}" if s in SINKS else str(s),
)
@pytest.mark.thinned(4)
def test_repeated_windows(sink, rpt):
    """Along M windows lie below each other in L0's matrix, along K beside; 0 of them are none."""
    c0 = 256 // BITS[sink[2]]
    m = Map(8, 8, c0, kh=3, kw=2, pads=(0, 1, 1, 1))  # 64 x 6 C0
    for turned in (False, True):
        run(sink, m, {"m_extension": 16, "k_extension": 2 * c0, "transpose": turned}, rpt=rpt)
        run(sink, m, {"m_extension": 32, "k_extension": c0, "transpose": turned}, rpt=rpt, apart=1)


def test_points_outside_of_the_map_are_unwritten_before_they_are_set():
    m = Map(2, 3, 16, kh=2, kw=2, pads=(2, 1, 1, 2))
    bench = Bench(on=A5)
    bench.noise(Mem.L1, Mem.L0A, written=True)
    bench.do(m.describe())
    bench.do(SetL3dRptV2(dst_stride=2))
    p = whole(m, 16)
    bench.do(Img2colv2CbufToCaV2(dtype=element_type("float16"), **m.fields(), **p), 0, 0)
    assert bench.messages == []
    image, matrix = bench.image(Mem.L0A), expanded(m, 16)
    for i, row in enumerate(matrix):
        for j, place in enumerate(row):
            to = 2 * ((j // 16 * 2 + i // 16) * 256 + i % 16 * 16 + j % 16)
            assert image.written(to, 2) == (place is not None)


def refused(*first, **changes):
    bench = Bench(on=A5)
    bench.noise(Mem.L1, written=True)
    for template in first:
        bench.do(template)
    p = {"m_extension": 32, "k_extension": 16, "channel_size": 16} | changes
    bench.do(Img2colv2CbufToCaV2(dtype=element_type("float16"), **p), 0, 0)
    return [
        message.removeprefix("parameter: img2colv2_cbuf_to_ca_v2") for message in bench.messages
    ]


def test_what_it_asks_of_the_registers():
    a_map, no_map = Map(4, 8, 16).describe(), " must follow a set_fmatrix, got none"
    no_stride = " must follow a set_l3d_rpt_v2 with a dst_stride, got none"
    assert refused() == [no_map]
    assert refused(a_map, SetL3dRptV2()) == [no_stride]
    assert refused(Map(4, 8, 16).describe(SetFmatrixB), SetL3dRptV2(dst_stride=2)) == [no_map]
    assert refused(a_map, SetL3dRptV2(dst_stride=1)) == [
        " must follow a set_l3d_rpt_v2 with a dst_stride of 2 or more, got 1"
    ]
    assert refused(a_map, SetL3dRptV2(dst_stride=1), transpose=True) == []
