"""Image to column, against loops: walk the filter over the map, cut windows, place elements."""

import struct
from dataclasses import dataclass, field

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.load3d import (
    Img2colv2CbufToCa,
    Img2colv2CbufToCb,
    SetFmatrix,
    SetFmatrixB,
    SetL3dPadding,
    SetL3dRpt,
    SetL3dSize,
)
from isa.bench import A2, Bench, Image

BITS = {"int4": 4, "uint8": 8, "int8": 8, "float16": 16, "bfloat16": 16}
BITS |= {"uint32": 32, "int32": 32, "float32": 32}
TO_A = [(Img2colv2CbufToCa, Mem.L0A, dtype) for dtype in BITS]
TO_B = [(Img2colv2CbufToCb, Mem.L0B, dtype) for dtype in BITS if BITS[dtype] >= 16]
PAD = 0x9C4D83A7


@dataclass
class Map:
    """A feature map, the filter that walks over it, and its padding."""

    h: int
    w: int
    c: int
    kh: int = 1
    kw: int = 1
    sh: int = 1
    sw: int = 1
    dh: int = 1
    dw: int = 1
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)  # left, right, top, bottom

    def fields(self) -> dict:
        """As the instruction has them."""
        return {
            "filter_h": self.kh % 256 or 1,
            "filter_w": self.kw % 256 or 1,
            "filter_size_h": self.kh > 255,
            "filter_size_w": self.kw > 255,
            "stride_h": self.sh,
            "stride_w": self.sw,
            "channel_size": self.c,
            "dilation_filter_h": self.dh,
            "dilation_filter_w": self.dw,
        }

    def describe(self, kind=SetFmatrix):
        left, right, top, bottom = self.pads
        return kind(
            l1_height=self.h,
            l1_width=self.w,
            padding_left_size=left,
            padding_right_size=right,
            padding_top_size=top,
            padding_bottom_size=bottom,
        )


Place = int | None
"""An element of the map in L1, counted from the map's start; None outside of the map."""


def expanded(m: Map, c0: int) -> list[list[Place]]:
    """The matrix: a row for each step of the filter, a column for each channel that it sees."""
    left, right, top, bottom = m.pads
    blocks, first = [], 0
    for start in range(0, m.c, c0):  # blocks of channels, the last one as wide as it is
        width = min(c0, m.c - start)
        blocks.append((first, width))
        first += m.h * m.w * width
    rows = []
    y = -top
    while y + m.dh * (m.kh - 1) < m.h + bottom:
        x = -left
        while x + m.dw * (m.kw - 1) < m.w + right:
            row: list[Place] = []
            for base, width in blocks:
                for i in range(m.kh):
                    for j in range(m.kw):
                        yy, xx = y + i * m.dh, x + j * m.dw
                        inside = 0 <= yy < m.h and 0 <= xx < m.w
                        for c in range(width):
                            at = base + (yy * m.w + xx) * width + c
                            row.append(at if inside else None)
            rows.append(row)
            x += m.sw
        y += m.sh
    return rows


def get(image: Image, start: int, place: int, bits: int) -> tuple[int, list[int]]:
    """One element's bits, and of each byte whether it was written."""
    at = start + place * bits // 8
    size = max(1, bits // 8)
    word = int.from_bytes(image.get(at, size), "little")
    if bits == 4:
        word = word >> 4 * (place % 2) & 15
    return word, list(image.valid[at : at + size])


@dataclass
class Sink:
    """An image that takes elements one by one; a byte of two is written if both are."""

    image: Image
    bits: int
    halves: dict[int, list[int]] = field(default_factory=dict)

    def put(self, start: int, place: int, word: int, known: list[int]) -> None:
        if self.bits > 4:
            raw = word.to_bytes(self.bits // 8, "little")
            for i, mark in enumerate(known):
                self.image.put(start + place * len(raw) + i, raw[i : i + 1], mark)
            return
        at = start + place // 2
        old = self.image.data[at]
        byte = old & 15 | word << 4 if place % 2 else old & 240 | word
        self.halves.setdefault(at, []).extend(known)
        self.image.put(at, bytes([byte]), int(all(self.halves[at])))


def window(m: Map, p: dict, bits: int, rpt=(0, 1, 0)) -> tuple[dict, int, int]:
    """Return {(row, column) in L0's matrix: place}, and the matrix's whole rows and columns."""
    c0 = 256 // bits
    matrix = expanded(m, c0)
    stride, time, along_k = rpt
    tall, wide = -(-p["m_extension"] // 16) * 16, -(-p["k_extension"] // c0) * c0
    found = {}
    for r in range(time):
        for i in range(p["m_extension"]):
            for j in range(p["k_extension"]):
                row = p.get("m_start_pt", 0) + i + (0 if along_k else r * stride * 16)
                column = p.get("k_start_pt", 0) + j + (r * stride * c0 if along_k else 0)
                if row < len(matrix) and column < len(matrix[0]):
                    at = (i, r * wide + j) if along_k else (r * tall + i, j)
                    found[at] = matrix[row][column]
    return found, tall * (1 if along_k else time), wide * (time if along_k else 1)


def location_of(mem: Mem, i: int, j: int, rows: int, columns: int, bits: int, turned: bool) -> int:
    """Where element (i, j) of the windows goes, in elements."""
    c0 = 256 // bits
    if mem is Mem.L0B:  # ZN: fractals of C0 x 16 row by row, elements column by column
        return ((i // c0) * -(-columns // 16) + j // 16) * 16 * c0 + (j % 16) * c0 + i % c0
    if turned:  # ZZ of the transpose, whose rows are as long as the windows are high
        i, j, columns = j, i, rows
    return ((i // 16) * (columns // c0) + j // c0) * 16 * c0 + (i % 16) * c0 + j % c0


def run(
    sink_of, m: Map, p: dict, *, pad: int | None = PAD, rpt=(0, 1, 0), boundary=0, src=96, on=A2
):
    """Execute and compare all of L0."""
    kind, mem, dtype = sink_of
    bits = BITS[dtype]
    bench = Bench(seed=m.h * m.w + m.c, on=on)
    bench.noise(Mem.L1, mem)
    source, expected = bench.image(Mem.L1), bench.image(mem)
    sink = Sink(expected, bits)
    found, rows, columns = window(m, p, bits, rpt)
    turned = bool(p.get("transpose"))
    for (i, j), place in found.items():
        to = location_of(mem, i, j, rows, columns, bits, turned)
        if place is None:
            word = (0xFFFFFFFF if pad is None else pad) & (1 << bits) - 1
            sink.put(512, to, word, [int(pad is not None)] * max(1, bits // 8))
        elif boundary:
            again = (src * 8 // bits + place) % (boundary * 8 // bits)
            sink.put(512, to, *get(source, 0, again, bits))
        else:
            sink.put(512, to, *get(source, src, place, bits))
    bench.do(m.describe())
    if pad is not None:
        bench.do(SetL3dPadding(config=pad))
    if rpt != (0, 1, 0):
        bench.do(SetL3dRpt(rpt_stride=rpt[0], rpt_time=rpt[1], rpt_mode=rpt[2]))
    if boundary:
        bench.do(SetL3dSize(value=boundary))
    bench.do(kind(dtype=element_type(dtype), **m.fields(), **p), 512, src)
    assert bench.messages == []
    bench.check(mem, expected)


def maps(c0: int, bits: int) -> list[Map]:
    tails = {4: (8, 16, 32), 8: (4, 8, 16), 16: (4, 8), 32: (4,)}[bits]
    return [
        Map(4, 8, c0),
        Map(5, 7, c0, kh=3, kw=3, pads=(1, 1, 1, 1)),
        Map(5, 6, 2 * c0, kh=2, kw=3, sh=2, sw=1, pads=(0, 2, 1, 0)),
        Map(7, 7, c0, kh=2, kw=2, dh=3, dw=2, pads=(3, 0, 0, 2)),
        *(Map(4, 5, tail, kh=3, kw=2, pads=(1, 0, 1, 1)) for tail in tails),
        *(Map(3, 6, c0 + tail, kh=2, kw=2, sw=2) for tail in tails),
    ]


def whole(m: Map, c0: int) -> dict:
    matrix = expanded(m, c0)
    return {"m_extension": len(matrix), "k_extension": len(matrix[0])}


@pytest.mark.parametrize("sink", TO_A + TO_B, ids=lambda s: f"{s[0].name} {s[2]}")
@pytest.mark.thinned(3)
def test_windows_of_the_expanded_matrix(sink):
    """Whole matrices of every layout of channels, and parts of one."""
    bits = BITS[sink[2]]
    c0 = 256 // bits
    for m in maps(c0, bits):
        run(sink, m, whole(m, c0))
    m = maps(c0, bits)[1]  # 35 x 9 C0
    for p in (
        {"m_extension": 16, "k_extension": c0, "m_start_pt": 16, "k_start_pt": 4 * c0},
        {"m_extension": 3, "k_extension": 2 * c0, "m_start_pt": 32, "k_start_pt": c0},
        {"m_extension": 20, "k_extension": 5, "m_start_pt": 16, "k_start_pt": 8 * c0},
        # beyond the matrix nothing is written
        {"m_extension": 32, "k_extension": 3 * c0, "m_start_pt": 19, "k_start_pt": 7 * c0},
    ):
        run(sink, m, p)


@pytest.mark.parametrize(
    "sink",
    [
        (Img2colv2CbufToCa, Mem.L0A, "int8"),
        (Img2colv2CbufToCa, Mem.L0A, "float16"),
        (Img2colv2CbufToCb, Mem.L0B, "float16"),
    ],
    ids=lambda s: f"{s[0].name} {s[2]}",
)
def test_windows_on_kirin_x90(sink):
    """The types of LoadData 3D V2's table for Kirin X90."""
    bits = BITS[sink[2]]
    for m in maps(256 // bits, bits)[:4]:
        run(sink, m, whole(m, 256 // bits), on=chip("KirinX90"))


@pytest.mark.parametrize(
    ("on", "dtype", "line"),
    [
        (
            "Kirin9030",
            "float16",
            "parameter: img2colv2_cbuf_to_ca must run on architecture 2201 or 3003, got 3113",
        ),
        (
            "KirinX90",
            "float32",
            "parameter: img2colv2_cbuf_to_ca.dtype must be one of int8, float16 on KirinX90, got "
            "float32",
        ),
    ],
)
def test_kirin_takes_the_types_and_chips_of_the_page(on, dtype, line):
    bench, m = Bench(on=chip(on)), Map(4, 8, 16)
    bench.do(m.describe())
    kind = element_type(dtype)
    load = Img2colv2CbufToCa(dtype=kind, m_extension=16, k_extension=kind.c0, **m.fields())
    bench.do(load, 0, 0)
    assert bench.messages == [line]


@pytest.mark.parametrize("pad", [None, 0, 0xFFFFFFFF, 0x12345678])
@pytest.mark.parametrize("sink", TO_A + TO_B[:1], ids=lambda s: f"{s[0].name} {s[2]}")
def test_points_outside_of_the_map(sink, pad):
    """What set_l3d_padding gave, cut to the element; unwritten before it is set."""
    c0 = 256 // BITS[sink[2]]
    m = Map(2, 3, c0, kh=2, kw=2, pads=(2, 1, 1, 2))
    run(sink, m, whole(m, c0), pad=pad)


TURNED = [s for s in TO_A if BITS[s[2]] >= 16]


@pytest.mark.parametrize("sink", TURNED + TO_B, ids=lambda s: f"{s[0].name} {s[2]}")
def test_transposed_windows(sink):
    """On the way to L0B the flag changes nothing: `location_of` does not ask for it there."""
    c0 = 256 // BITS[sink[2]]
    for m in (Map(4, 8, 3 * c0), Map(5, 7, c0, kh=3, kw=1, pads=(1, 1, 1, 1))):
        run(sink, m, whole(m, c0) | {"transpose": True})
        p = {"m_extension": 16, "k_extension": c0, "k_start_pt": c0, "transpose": True}
        run(sink, m, p)


@pytest.mark.parametrize("rpt", [(1, 2, 0), (2, 2, 0), (0, 3, 0), (1, 2, 1), (3, 2, 1), (5, 0, 0)])
@pytest.mark.parametrize("sink", TO_A[-5:] + TO_B, ids=lambda s: f"{s[0].name} {s[2]}")
@pytest.mark.thinned(4)
def test_repeated_windows(sink, rpt):
    """Along M windows lie below each other in L0, along K beside; 0 of them are none."""
    c0 = 256 // BITS[sink[2]]
    m = Map(8, 8, c0, kh=3, kw=2, pads=(0, 1, 1, 1))  # 64 x 6 C0
    for turned in (False, True):
        if turned and BITS[sink[2]] < 16:
            continue
        run(sink, m, {"m_extension": 16, "k_extension": 2 * c0, "transpose": turned}, rpt=rpt)
        run(sink, m, {"m_extension": 32, "k_extension": c0, "transpose": turned}, rpt=rpt)


@pytest.mark.parametrize("sink", [TO_A[0], TO_A[1], TO_A[3], TO_A[7], TO_B[0]], ids=lambda s: s[2])
def test_l1_begins_anew_at_the_boundary(sink):
    c0 = 256 // BITS[sink[2]]
    m = Map(6, 9, c0, kh=2, kw=2)
    run(sink, m, whole(m, c0), boundary=1024, src=512)
    run(sink, m, whole(m, c0), boundary=4096, src=0)


@pytest.mark.parametrize(
    ("src", "need"),
    [
        (1024, "start before the boundary 1024 of set_l3d_size"),
        (528, "start at a multiple of 32 B in L1"),
    ],
)
def test_where_a_map_may_start_under_a_boundary(src, need):
    bench = Bench()
    bench.noise(Mem.L1, written=True)
    before = bench.image(Mem.L0A)
    bench.do(Map(4, 4, 16).describe())
    bench.do(SetL3dSize(value=1024))
    p = {"m_extension": 16, "k_extension": 16, "channel_size": 16}
    bench.do(Img2colv2CbufToCa(dtype=element_type("float16"), **p), 0, src)
    assert bench.messages == [f"parameter: img2colv2_cbuf_to_ca.src must {need}, got {src}"]
    bench.check(Mem.L0A, before)


@pytest.mark.parametrize("value", [32, 992, 524288 + 32])
def test_a_boundary_that_is_too_small_or_outside_of_l1(value):
    bench = Bench()
    bench.do(SetL3dSize(value=value))
    assert bench.messages == [
        f"parameter: set_l3d_size.value must be 0 or in [1024, 524288], got {value}"
    ]


def test_the_map_of_the_right_matrix():
    """f_matrix_ctrl takes the other register; each is as its own setter left it."""
    made = []
    for ctrl, own, other in ((False, SetFmatrix, SetFmatrixB), (True, SetFmatrixB, SetFmatrix)):
        bench = Bench(seed=3)
        bench.noise(Mem.L1, written=True)
        bench.do(Map(2, 9, 16).describe(other))
        bench.do(Map(4, 4, 16).describe(own))
        p = {"m_extension": 16, "k_extension": 16, "channel_size": 16, "f_matrix_ctrl": ctrl}
        bench.do(Img2colv2CbufToCa(dtype=element_type("float16"), **p), 0, 0)
        assert bench.messages == []
        made.append(bench.image(Mem.L0A))
        # a 1 x 1 filter over 4 x 4 pixels of 16 channels copies them
        assert made[-1].get(0, 512) == bench.image(Mem.L1).get(0, 512)
    assert made[0] == made[1]


@pytest.mark.parametrize(("ctrl", "setter"), [(False, "set_fmatrix"), (True, "set_fmatrix_b")])
def test_it_asks_for_a_map(ctrl, setter):
    bench = Bench()
    p = {"m_extension": 16, "k_extension": 16, "channel_size": 16, "f_matrix_ctrl": ctrl}
    bench.do(Img2colv2CbufToCa(dtype=element_type("float16"), **p), 0, 0)
    assert bench.messages == [f"parameter: img2colv2_cbuf_to_ca must follow a {setter}, got none"]


def test_a_filter_of_more_than_255_points():
    m = Map(2, 300, 16, kw=257, pads=(0, 0, 0, 0))
    run(TO_A[3], m, {"m_extension": 16, "k_extension": 48, "k_start_pt": 16 * 254})


RESTS = {4: (8, 16, 32), 8: (4, 8, 16), 16: (4, 8), 32: (4,)}


@pytest.mark.parametrize("sink", TO_A + TO_B, ids=lambda s: f"{s[0].name} {s[2]}")
def test_channel_sizes(sink):
    """Every size up to three blocks: the page's list, and no other."""
    kind, _, dtype = sink
    bits = BITS[dtype]
    c0 = 256 // bits
    allowed = {n * c0 + rest for n in range(4) for rest in (0, *RESTS[bits])} - {0}
    for size in range(1, 3 * c0):
        bench = Bench()
        bench.noise(Mem.L1, written=True)
        bench.do(Map(4, 4, size).describe())
        p = {"m_extension": 16, "k_extension": size, "channel_size": size}
        bench.do(kind(dtype=element_type(dtype), **p), 0, 0)
        rests = ", ".join(map(str, RESTS[bits]))
        message = (
            f"parameter: {kind.name}.channel_size must be a multiple of {c0}, or {rests} more, "
            f"for {dtype}, got {size}"
        )
        assert bench.messages == ([] if size in allowed else [message]), size


REFUSED = [
    ("float16", {"k_start_pt": 8}, "k_start_pt must be a multiple of 16 for float16, got 8"),
    ("int8", {"k_start_pt": 16}, "k_start_pt must be a multiple of 32 for int8, got 16"),
    ("int8", {"transpose": True}, "transpose must be off for int8, which is not of 16 or 32 bits, "
     "got on"),
    ("float16", {"filter_h": 9}, "filter_h must fit the padded map, got 9 dilated points"),
    ("float16", {"filter_w": 3, "dilation_filter_w": 4}, "filter_w must fit the padded map, "
     "got 3 dilated points"),
    ("float16", {"k_extension": 17, "filter_w": 4}, "k_extension must be a multiple of 16 unless "
     "it reaches the last fractal, got 17"),
    ("float16", {"m_extension": 24}, "m_extension must be a multiple of 16 unless it reaches the "
     "last fractal, got 24"),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "changes", "line"), REFUSED)
def test_what_a_window_must_be(dtype, changes, line):
    bench = Bench()
    bench.noise(Mem.L1, written=True)
    bench.do(Map(8, 8, 32).describe())
    p = {"m_extension": 16, "k_extension": 32, "channel_size": 32} | changes
    bench.do(Img2colv2CbufToCa(dtype=element_type(dtype), **p), 0, 0)
    assert bench.messages == [f"parameter: img2colv2_cbuf_to_ca.{line}"]


def test_rows_of_32_bit_elements_need_no_multiple():
    run(TO_A[7], Map(8, 8, 8), {"m_extension": 24, "k_extension": 8})


# --- what it is for


def nz(bench: Bench, values: np.ndarray, at: int) -> None:
    """A matrix in L1: columns of C0, row by row."""
    rows, columns = values.shape
    c0 = 32 // values.itemsize
    for i in range(rows):
        for j in range(columns):
            place = (j // c0) * rows * c0 + i * c0 + j % c0
            bench.poke(Mem.L1, at + place * values.itemsize, values[i, j].tobytes())


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_product_of_two_matrices_that_are_transposed_on_the_way(dtype):
    """[k, m] and [k, n] in L1 as maps of one row: A transposed to ZZ, B to ZN."""
    m, k, n = 40, 48, 24
    bench = Bench(seed=9)
    left = bench.rng.integers(-4, 5, (k, m)).astype(dtype)
    right = bench.rng.integers(-4, 5, (k, n)).astype(dtype)
    nz(bench, left, 0)
    nz(bench, right, 65536)
    kind = element_type(dtype)
    bench.do(SetFmatrix(l1_height=1, l1_width=k))
    p = {"dtype": kind, "m_extension": k, "transpose": True}
    for load, columns, at in ((Img2colv2CbufToCa, m, 0), (Img2colv2CbufToCb, n, 65536)):
        channels = -(-columns // kind.c0) * kind.c0
        bench.do(load(k_extension=channels, channel_size=channels, **p), 0, at)
    types = {"a_type": kind, "b_type": kind, "c_type": element_type("float32")}
    bench.do(Mad(m=m, k=k, n=n, k_direction_align=True, **types), 0, 0, 0)
    assert bench.messages == []
    l0c = bench.image(Mem.L0C)
    for i in range(m):
        for j in range(n):
            at = ((j // 16) * 48 * 16 + i * 16 + j % 16) * 4
            total = sum(float(left[x, i]) * float(right[x, j]) for x in range(k))
            assert struct.unpack("<f", l0c.get(at, 4)) == (total,)


def test_a_convolution():
    """3 x 3 over 6 x 7 pixels of 16 channels, stride 2, padded: 12 places, 5 filters."""
    bench = Bench(seed=11)
    image = bench.rng.integers(-3, 4, (6, 7, 16)).astype(np.float16)
    filters = bench.rng.integers(-3, 4, (3, 3, 16, 5)).astype(np.float16)
    bench.poke(Mem.L1, 0, image.tobytes())
    weights = filters.reshape(9 * 16, 5)
    for row in range(9 * 16):
        for column in range(5):
            at = ((row // 16) * 256 + column * 16 + row % 16) * 2
            bench.poke(Mem.L0B, at, weights[row, column].tobytes())
    m = Map(6, 7, 16, kh=3, kw=3, sh=2, sw=2, pads=(1, 1, 1, 0))
    bench.do(m.describe())
    bench.do(SetL3dPadding(config=0))
    half, word = element_type("float16"), element_type("float32")
    p = {"m_extension": 12, "k_extension": 144, **m.fields()}
    bench.do(Img2colv2CbufToCa(dtype=half, **p), 0, 0)
    bench.do(Mad(a_type=half, b_type=half, c_type=word, m=12, k=144, n=5), 0, 0, 0)
    assert bench.messages == []
    l0c = bench.image(Mem.L0C)
    for place in range(12):
        y, x = place // 4 * 2 - 1, place % 4 * 2 - 1
        for number in range(5):
            total = 0.0
            for i in range(3):
                for j in range(3):
                    if 0 <= y + i < 6 and 0 <= x + j < 7:
                        for c in range(16):
                            total += float(image[y + i, x + j, c]) * float(filters[i, j, c, number])
            assert struct.unpack("<f", l0c.get((place * 16 + number) * 4, 4)) == (total,)
