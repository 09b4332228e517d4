"""Moves that architecture 3510 has of its own, against loops over bytes from the pages."""

import struct

import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import CopyGmToUbuf, CopyUbufToGm
from cubecore.isa.mte.copies_3510 import (
    CopyCbufToFbufV2,
    CopyGmToCbufMultiDn2Nz,
    CopyGmToCbufMultiNd2NzV2,
    CopyGmToUbufV2,
    CopyUbufToGmV2,
    NzPara,
    SetMte2NzPara,
)
from cubecore.isa.mte.load2d_3510 import (
    LoadCbufToCaV2,
    LoadCbufToCaV2Transpose,
    LoadCbufToCbV2,
    LoadCbufToCbV2Transpose,
)
from isa.bench import A2, Bench

A5 = chip("Ascend950PR_9599")
BITS = {
    "int8": 8,
    "uint8": 8,
    "float8_e4m3fn": 8,
    "float8_e5m2": 8,
    "hifloat8": 8,
    "float16": 16,
    "bfloat16": 16,
    "int16": 16,
    "uint16": 16,
    "float32": 32,
    "int32": 32,
    "uint32": 32,
}
# matrices, n, d, bytes between stored neighbours, bytes between matrices; 32 B at the target
# between rows, columns of C0, matrices
MATRICES = [
    ((1, 1, 16, 256, 0), (1, 16, 0)),
    ((1, 19, 23, 256, 0), (1, 32, 0)),
    ((2, 7, 40, 512, 8192), (2, 37, 180)),
    ((3, 5, 3, 128, 2048), (1, 5, 20)),
    ((0, 5, 3, 128, 2048), (1, 5, 20)),
    ((1, 0, 3, 128, 0), (1, 5, 0)),
    ((1, 5, 0, 128, 0), (1, 5, 0)),
]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("kind", [CopyGmToCbufMultiNd2NzV2, CopyGmToCbufMultiDn2Nz])
@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("case", MATRICES, ids=str)
def test_to_nz(kind, dtype, case, small):
    """ND: element (n, d) is at n * stride + d; DN: at d * stride + n. Pieces are filled with 0."""
    (count, n, d, apart, far), (row, column, matrix) = case
    size = BITS[dtype] // 8
    c0 = 32 // size
    bench = Bench(seed=n, gm_bytes=40_000, on=A5)
    bench.noise(Mem.GM, Mem.L1)
    source, expected = bench.image(Mem.GM), bench.image(Mem.L1)
    there, here = 37, 4096
    narrow = small and d <= 4
    for x in range(count if d else 0):
        rows = n if not narrow else -(-n * 4 // c0) * c0 // 4  # whole blocks of 32 B
        for i in range(rows):
            for j in range(4 if narrow else -(-d // c0) * c0):
                if narrow:
                    to = here + x * matrix * 32 + (i * 4 + j) * size
                else:
                    to = here + (x * matrix + (j // c0) * column + i * row) * 32 + j % c0 * size
                if i >= n or j >= d:
                    expected.put(to, bytes(size))
                    continue
                by = i * apart + j * size
                if kind is CopyGmToCbufMultiDn2Nz:
                    by = j * apart + i * size
                expected.copy_from(source, there + x * far + by, to, size)
    para = NzPara(count, row, column, matrix)
    assert para.pack() == struct.unpack("<Q", struct.pack("<4H", count, row, column, matrix))[0]
    # the word reaches the instruction through its register
    template = kind(
        dtype=element_type(dtype),
        loop1_src_stride=apart,
        n_value=n,
        d_value=d,
        loop4_src_stride=far,
        smallc0_en=small,
    )
    bench.do(SetMte2NzPara(config=para.pack()))
    bench.do(template, here, bench.base + there)
    assert bench.messages == []
    bench.check(Mem.L1, expected)


@pytest.mark.parametrize("kind", [CopyGmToCbufMultiNd2NzV2, CopyGmToCbufMultiDn2Nz])
def test_to_nz_needs_its_register_and_whole_elements(kind):
    half = element_type("float16")
    p = {"dtype": half, "loop1_src_stride": 32, "n_value": 2, "d_value": 16}
    bench = Bench(gm_bytes=4096, on=A5)
    bench.do(kind(**p), 0, bench.base)
    assert [m.split(": ", 1)[1] for m in bench.messages] == [
        f"{kind.name} must follow a set_mte2_nz_para, got none"
    ]
    bench.do(SetMte2NzPara(config=NzPara(1, 1, 16, 0).pack()))
    bench.do(kind(**p | {"loop1_src_stride": 33}), 0, bench.base)
    assert bench.messages[1] == (
        f"parameter: {kind.name}.loop1_src_stride must be a multiple of 2 B, got 33"
    )


LOADS = [(LoadCbufToCaV2, Mem.L0A), (LoadCbufToCbV2, Mem.L0B)]
TURNED = [(LoadCbufToCaV2Transpose, Mem.L0A), (LoadCbufToCbV2Transpose, Mem.L0B)]
# the page's example: start (2, 2), 2 x 3 fractals, strides 5 and 3
WINDOWS = [
    {"m_step": 1, "k_step": 1, "src_stride": 1, "dst_stride": 1},
    {"m_step": 2, "k_step": 3, "src_stride": 5, "dst_stride": 3}
    | {"m_start_position": 2, "k_start_position": 2},
    {"m_step": 4, "k_step": 2, "src_stride": 4, "dst_stride": 4},
    {"m_step": 1, "k_step": 4, "src_stride": -2, "dst_stride": 1, "k_start_position": 3},
    {"m_step": 0, "k_step": 4, "src_stride": 4, "dst_stride": 4},
    {"m_step": 4, "k_step": 0, "src_stride": 4, "dst_stride": 4},
]


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load[0].name)
@pytest.mark.parametrize("p", WINDOWS, ids=str)
def test_windows_of_fractals(load, p):
    kind, mem = load
    bench = Bench(seed=p["m_step"], on=A5)
    bench.noise(Mem.L1, mem)
    source, expected = bench.image(Mem.L1), bench.image(mem)
    for k in range(p["k_step"]):
        for m in range(p["m_step"]):
            start = p.get("k_start_position", 0) * abs(p["src_stride"])
            start += p.get("m_start_position", 0)
            taken = 96 + (start + k * p["src_stride"] + m) * 512
            expected.copy_from(source, taken, 1024 + (k * p["dst_stride"] + m) * 512, 512)
    bench.do(kind(**p), 1024, 96)
    assert bench.messages == []
    bench.check(mem, expected)


TURNED_BITS = BITS | {"int4": 4, "float4_e2m1fn": 4, "float4_e1m2": 4}


@pytest.mark.parametrize("load", TURNED, ids=lambda load: load[0].name)
@pytest.mark.parametrize("dtype", TURNED_BITS)
@pytest.mark.parametrize("steps", [(4, 2), (4, 6), (8, 2), (0, 2), (4, 0)], ids=str)
@pytest.mark.thinned(4)
def test_windows_transposed(load, dtype, steps):
    """Row r, column c of the window becomes row c, column r of NZ, cut into C0 anew."""
    kind, mem = load
    (m_step, k_step), bits = steps, TURNED_BITS[dtype]
    c0, src_stride = 256 // bits, m_step + 1
    dst_stride = k_step * c0 // 16 + 2
    bench = Bench(seed=bits, on=A5)
    bench.noise(Mem.L1, mem, written=True)
    source, expected = bench.image(Mem.L1), bench.image(mem)

    def nibble(image, place):
        return image.data[place // 2] >> place % 2 * 4 & 15

    for r in range(m_step * 16):
        for c in range(k_step * c0):
            fractal = (2 + c // c0) * src_stride + 1 + r // 16
            there = 64 * 8 + (fractal * 512 * 8) + ((r % 16) * c0 + c % c0) * bits
            fractal = (r // c0) * dst_stride + c // 16
            here = 512 * 8 + (fractal * 512 * 8) + ((c % 16) * c0 + r % c0) * bits
            if bits == 4:
                code, at = nibble(source, there // 4), here // 8
                old = expected.data[at]
                high = here // 4 % 2
                byte = old & 15 | code << 4 if high else old & 240 | code
                expected.put(at, bytes([byte]))
            else:
                expected.copy_from(source, there // 8, here // 8, bits // 8)
    p = {"m_start_position": 1, "k_start_position": 2, "m_step": m_step, "k_step": k_step}
    strides = {"src_stride": src_stride, "dst_stride": dst_stride}
    bench.do(kind(dtype=element_type(dtype), **p, **strides), 512, 64)
    assert bench.messages == []
    bench.check(mem, expected)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"m_step": 1}, "m_step must be a multiple of 2 for int8, got 1"),
        ({"dtype": "int4"}, "m_step must be a multiple of 4 for int4, got 2"),
        ({"dtype": "float32", "k_step": 3}, "k_step must be a multiple of 2 for float32, got 3"),
        ({"src_stride": -2}, "src_stride must stay at or above the source, got -2"),
    ],
    ids=str,
)
def test_what_a_transposing_window_cannot_cut(changes, line):
    p = {"dtype": "int8", "m_step": 2, "k_step": 2, "src_stride": 2, "dst_stride": 4} | changes
    p["dtype"] = element_type(p["dtype"])
    bench = Bench(on=A5)
    bench.do(LoadCbufToCaV2Transpose(**p), 0, 0)
    assert bench.messages == [f"parameter: load_cbuf_to_ca_v2_transpose.{line}"]


COPIES = [(CopyGmToUbufV2, Mem.GM, Mem.UB), (CopyUbufToGmV2, Mem.UB, Mem.GM)]


@pytest.mark.parametrize("copy", COPIES, ids=lambda copy: copy[0].name)
@pytest.mark.parametrize(
    "runs",
    [(1, 1, 0, 0), (1, 100, 7, 32), (5, 48, 50, 64), (3, 33, 34, 33), (4095, 32, 32, 32)],
    ids=str,
)
def test_runs_of_bytes(copy, runs):
    """Strides lie between the heads of two runs, in bytes."""
    kind, source, sink = copy
    n, length, in_gm, in_ub = runs
    bench = Bench(1, seed=n, gm_bytes=140_000, on=A5)
    bench.noise(source, sink)
    taken, expected = bench.image(source), bench.image(sink)
    for i in range(n):
        gm, ub = 37 + i * in_gm, 4096 + i * in_ub
        there, here = (gm, ub) if source is Mem.GM else (ub, gm)
        expected.copy_from(taken, there, here, length)
    to_ub = source is Mem.GM
    src, dst = (in_gm, in_ub) if to_ub else (in_ub, in_gm)
    at = (4096, bench.base + 37) if to_ub else (bench.base + 37, 4096)
    bench.do(kind(n_burst=n, len_burst=length, src_stride=src, dst_stride=dst), *at)
    assert bench.messages == []
    bench.check(sink, expected)


@pytest.mark.parametrize("copy", COPIES, ids=lambda copy: copy[0].name)
def test_a_stride_in_the_unified_buffer_is_whole_blocks(copy):
    kind, source, _ = copy
    name = "dst_stride" if source is Mem.GM else "src_stride"
    bench = Bench(1, gm_bytes=4096, on=A5)
    at = (0, bench.base) if source is Mem.GM else (bench.base, 0)
    bench.do(kind(n_burst=2, len_burst=32, **{name: 40}), *at)
    assert bench.messages == [
        f"parameter: {kind.name}.{name} must be len_burst or a multiple of 32 B, got 40"
    ]


@pytest.mark.parametrize("runs", [(1, 1, 0, 0), (3, 2, 0, 0), (3, 1, 5, 2), (2, 3, 1, 0)], ids=str)
def test_scales_in_units_of_64_bytes(runs):
    n, length, src_gap, dst_gap = runs
    bench = Bench(seed=n, on=A5)
    bench.noise(Mem.L1, Mem.FB)
    source, expected = bench.image(Mem.L1), bench.image(Mem.FB)
    there, here = 96, 128
    for _ in range(n):
        expected.copy_from(source, there, here, length * 64)
        there += length * 64 + src_gap * 32
        here += (length + dst_gap) * 64
    gaps = {"src_gap_size": src_gap, "dst_gap_size": dst_gap}
    bench.do(CopyCbufToFbufV2(n_burst=n, len_burst=length, **gaps), 128, 96)
    assert bench.messages == []
    bench.check(Mem.FB, expected)


def test_one_call_has_gaps_on_2201_and_strides_on_3510():
    """asc_copy_gm2ub(dst, src, 2, 64, 64, 96), and back: one call, two meanings (the trap)."""
    from cubecore.frontends.capi.calls.binding import bind
    from cubecore.frontends.capi.pointer import Pointer

    half = element_type("float16")
    at = {mem: Pointer(mem, half, 0, None) for mem in (Mem.GM, Mem.UB)}
    found = {}
    for call, places in (
        ("asc_copy_gm2ub", (Mem.UB, Mem.GM)),
        ("asc_copy_ub2gm", (Mem.GM, Mem.UB)),
    ):
        for on in (A2, A5):
            arguments = [*(at[mem] for mem in places), 2, 64, 64, 96]
            (step,) = bind(call, arguments, {}, on.arch).steps
            template = step[0]
            spans = []
            for name in ("src", "dst"):
                first = template.offsets(name)[:, 0] * (32 if on is A2 else 1)
                spans.append(int(first[1] - first[0]))
            moved = template.offsets("src").shape[1] * (32 if on is A2 else 1)
            found[call, on.arch] = type(template), moved, *spans
    # 64 blocks of 32 B, then a gap of 64 (or 96) of them; or 64 B, and heads 64 (or 96) B apart
    assert found == {
        ("asc_copy_gm2ub", "2201"): (CopyGmToUbuf, 2048, 2048 + 2048, 2048 + 3072),
        ("asc_copy_gm2ub", "3510"): (CopyGmToUbufV2, 64, 64, 96),
        ("asc_copy_ub2gm", "2201"): (CopyUbufToGm, 2048, *_order_of_ub2gm(2048)),
        ("asc_copy_ub2gm", "3510"): (CopyUbufToGmV2, 64, 96, 64),
    }


def _order_of_ub2gm(length):
    """2201's prototype: src_gap before dst_gap, as its page has them."""
    return length + 64 * 32, length + 96 * 32
