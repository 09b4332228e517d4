"""What `instructions.py` times: an instruction of each family, and what NumPy calls that work."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.mte.copies_3510 import NzPara, SetMte2NzPara
from cubecore.isa.mte.load3d import SetFmatrix
from cubecore.isa.mte.load3d_3510 import SetL3dRptV2
from cubecore.isa.vector.elementwise.dequantise import SetDeqscale
from cubecore.isa.vector.permute.transpose import SetVaRegSb

APART = 40960
"""Bytes from one operand to the next."""
Array = np.ndarray[Any, Any]
THREE = 0x40400000
"""3 as a float32's bits."""


@dataclass(frozen=True)
class Case:
    """An instruction, NumPy's call on as many random elements of `dtype`, and its parameters.

    `sub` is the part of a core that runs it, `before` what is issued once ahead of it.
    """

    name: str
    dtype: str
    numpy: Callable[[Array, Array], Any]
    params: dict[str, Any] = field(default_factory=dict)
    types: dict[str, str] | None = None
    lanes: int = 0
    offsets: bool = False
    chip: str = "Ascend910B3"
    sub: int = 1
    before: tuple[Instruction, ...] = ()

    def template(self, repeat: int) -> Instruction:
        """Return the instruction with as many repeats."""
        types = {"dtype": self.dtype} if self.types is None else self.types
        named = {parameter: element_type(name) for parameter, name in types.items()}
        return instruction_named(self.name)(**named, **self.params, repeat=repeat)

    def elements(self, repeat: int) -> int:
        """Return the elements that so many repeats take."""
        return repeat * (self.lanes or 256 // element_type(self.dtype).size_bytes)


def keep_alternate(x: Array, _: Array) -> Array:
    """Every other element."""
    return x[x.size % 2 :: 2].copy()


def sort_each(x: Array, _: Array) -> Array:
    """The order of each 32, from the largest down."""
    return np.argsort(-x.reshape(-1, 32), axis=1, kind="stable")


@dataclass(frozen=True)
class CubeCase(Case):
    """An instruction of the Cube's side; `sized` gives the parameters of `edge` fractals a side."""

    sized: Callable[[int], dict[str, Any]] = dict
    sub: int = 0

    def template(self, repeat: int) -> Instruction:
        """Return the instruction on as many fractals."""
        named = {name: element_type(kind) for name, kind in (self.types or {}).items()}
        sizes = self.sized(math.isqrt(repeat))
        return instruction_named(self.name)(**named, **self.params, **sizes)

    def elements(self, repeat: int) -> int:
        """Return the elements of so many fractals, or of so many times `lanes`."""
        return repeat * (self.lanes or 256)


def extents(edge: int) -> dict[str, Any]:
    """A product with a K of 64."""
    return {"m": 16 * edge, "n": 16 * edge, "k": 64}


def multiply(x: Array, y: Array) -> Array:
    """A product of as many rows and columns, with a K of 64."""
    rows = math.isqrt(x.size)
    a, b = (np.resize(v, (rows, 64)).astype(np.float32) for v in (x, y))
    return a @ b.T


def turn(x: Array, _: Array) -> Array:
    """Each fractal transposed."""
    return x.reshape(-1, 16, 16).transpose(0, 2, 1).copy()


def into_nz(x: Array, _: Array) -> Array:
    """Row-major to columns of 16 elements."""
    rows = math.isqrt(x.size)
    return x.reshape(rows, -1, 16).transpose(1, 0, 2).copy()


def window(edge: int) -> dict[str, Any]:
    """As many fractals a side."""
    return {"m_step": edge, "k_step": edge, "src_stride": edge, "dst_stride": edge}


def same(x: Array, _: Array) -> Array:
    """A copy."""
    return x.copy()


def spread(x: Array, _: Array) -> Array:
    """Two bytes in each 32."""
    made = np.zeros((x.size, 32 // x.itemsize), x.dtype)
    made[:, 0] = x
    return made


def runs(edge: int) -> dict[str, Any]:
    """As many runs as fractals on a side, in blocks of 32 bytes of half elements."""
    return {"n_burst": edge, "len_burst": 16 * edge}


def byte_runs(edge: int) -> dict[str, Any]:
    """The same in bytes, from head to head where strides are named."""
    return {"n_burst": edge, "len_burst": 512 * edge}


def strided(edge: int) -> dict[str, Any]:
    """The same with strides of 3510."""
    return byte_runs(edge) | dict.fromkeys(("src_stride", "dst_stride"), 512 * edge)


def tile_of(edge: int) -> dict[str, Any]:
    """A tile of L0C, row by row."""
    return dict.fromkeys(("n_size", "m_size", "dst_stride", "src_stride"), 16 * edge)


def expanded(edge: int) -> dict[str, Any]:
    """A window of load3d."""
    sizes = ("k_extension", "m_extension", "channel_size")
    return dict.fromkeys(sizes, 16 * edge)


def registers_of(start: int, base: int) -> tuple[Instruction, ...]:
    """Two VA registers with the addresses of sixteen blocks from `base` on."""
    return tuple(
        SetVaRegSb(va=start + half, **{f"address{i}": base + 32 * (8 * half + i) for i in range(8)})
        for half in (0, 1)
    )


NZ_PARA = SetMte2NzPara(config=NzPara(1, 1, 128, 0).pack())
HALF = {"dtype": "float16"}
A5 = "Ascend950PR_9599"
PRODUCT = {"a_type": "float16", "b_type": "float16", "c_type": "float32"}
CUBE_CASES = (
    CubeCase("mad", "float16", multiply, types=PRODUCT, sized=extents),
    CubeCase(
        *("mad", "int8", multiply),
        types={"a_type": "int8", "b_type": "int8", "c_type": "int32"},
        sized=extents,
    ),
    CubeCase(
        *("mad_mx", "float8_e5m2", multiply),
        types={"a_type": "float8_e5m2", "b_type": "float8_e5m2"},
        sized=extents,
        chip=A5,
    ),
    CubeCase(
        *("copy_gm_to_cbuf", "float16", lambda x, _: x.copy()),
        sized=lambda edge: {"n_burst": edge, "len_burst": 16 * edge},
    ),
    CubeCase(
        *("copy_gm_to_cbuf_multi_nd2nz", "float16", into_nz),
        types=HALF,
        sized=lambda edge: (
            dict.fromkeys(("n_value", "d_value", "src_d_value"), 16 * edge)
            | {"dst_nz_c0_stride": 16 * edge}
        ),
    ),
    CubeCase(
        *("copy_gm_to_cbuf_multi_dn2nz", "float16", into_nz),
        types=HALF,
        sized=lambda edge: (
            {"n_value": 16 * edge, "d_value": 16 * edge} | {"loop1_src_stride": 32 * edge}
        ),
        chip=A5,
        before=(NZ_PARA,),
    ),
    CubeCase(
        *("load_cbuf_to_ca", "float16", lambda x, _: x.copy()),
        sized=lambda edge: {"repeat": edge * edge},
    ),
    CubeCase(
        *("load_cbuf_to_cb_transpose", "float16", turn),
        types=HALF,
        sized=lambda edge: {"repeat": edge * edge},
    ),
    CubeCase("load_cbuf_to_ca_v2", "float16", lambda x, _: x.copy(), sized=window, chip=A5),
    CubeCase(*("load_cbuf_to_ca_v2_transpose", "float16", turn), types=HALF, sized=window, chip=A5),
    CubeCase(
        *("load_cbuf_to_ca_mx", "float16", lambda x, _: x.copy()),
        sized=lambda edge: (
            {"x_step": edge, "y_step": edge, "src_stride": edge} | {"dst_stride": edge, "dst_at": 0}
        ),
        chip=A5,
    ),
    CubeCase(
        *("img2colv2_cbuf_to_ca", "float16", lambda x, _: x.copy()),
        types=HALF,
        sized=lambda edge: (
            {"k_extension": 16 * edge, "m_extension": 16 * edge} | {"channel_size": 16 * edge}
        ),
        before=(SetFmatrix(l1_height=16, l1_width=8),),
    ),
    CubeCase(
        *("create_cbuf_matrix", "float16", lambda x, _: np.zeros_like(x), {"bits": 0}),
        types=HALF,
        sized=lambda edge: {"repeat": 1, "blk_num": 16 * edge * edge},
    ),
    CubeCase(
        *("copy_matrix_cc_to_gm", "float32", lambda x, _: x.astype(np.float16)),
        {"quant_pre": "F322F16", "nz2nd_en": True},
        types={"src_type": "float32"},
        sized=lambda edge: dict.fromkeys(
            ("n_size", "m_size", "dst_stride", "src_stride"), 16 * edge
        ),
    ),
    CubeCase(
        *("copy_matrix_cc_to_cbuf", "float32", lambda x, _: x.astype(np.float16)),
        {"quant_pre": "F322F16"},
        types={"src_type": "float32"},
        sized=lambda edge: dict.fromkeys(
            ("n_size", "m_size", "dst_stride", "src_stride"), 16 * edge
        ),
    ),
)
FLOATS = {"dst_type": "float32", "src_type": "float32"}
TILES = {"src_type": "float32"}
FURTHER_CASES = (
    Case("vmadd", "float32", lambda x, y: x * y + x),
    Case("vmla", "float32", lambda x, y: x * y + x, types=FLOATS),
    Case("vaddrelu", "float32", lambda x, y: np.maximum(x + y, 0), types=FLOATS),
    Case(
        *("vmulconv", "float16", lambda x, y: (x * y).astype(np.int8)),
        types={"dst_type": "int8", "src_type": "float16"},
    ),
    Case("vcpadd", "float32", lambda x, _: x.reshape(-1, 2).sum(axis=1)),
    Case("vcmp_lt", "float32", lambda x, y: np.packbits(x < y, bitorder="little")),
    Case(
        *("vcmpvs_lt", "float32", lambda x, _: np.packbits(x < 3, bitorder="little")),
        {"value": THREE},
    ),
    Case("vsel_scalar", "float32", lambda x, y: np.where(x < y, x, np.float32(3))),
    Case("vci", "int32", lambda x, _: np.arange(x.size, dtype=x.dtype), {"first": 3}),
    Case(
        *("vconv_deq", "int32", lambda x, _: (x * np.float32(0.5)).astype(np.float16)),
        types={},
        before=(SetDeqscale(value=0x3800),),
    ),
    Case(
        *("vconv_deqs162b8", "int16", lambda x, _: np.clip(x * 0.5, -128, 127).astype(np.int8)),
        types={"dst_type": "int8"},
        before=(SetDeqscale(value=0x3F000000 | 1 << 46),),
    ),
    Case(
        *("scatter_vnchwconv_b16", "int16", turn),
        {"dst_va": 0, "src_va": 2, "dst_stride": 16, "src_stride": 16},
        types={},
        lanes=256,
        before=(*registers_of(0, 0), *registers_of(2, APART)),
    ),
    *(
        CubeCase(name, "float16", same, sized=runs, sub=1)
        for name in ("copy_gm_to_ubuf", "copy_ubuf_to_gm", "copy_ubuf_to_ubuf")
    ),
    *(
        CubeCase(f"copy_{way}_align", "float16", same, types=HALF, sized=byte_runs, sub=1)
        for way in ("gm_to_ubuf", "ubuf_to_gm")
    ),
    *(
        CubeCase(f"copy_{way}_v2", "float16", same, sized=strided, sub=1, chip=A5)
        for way in ("gm_to_ubuf", "ubuf_to_gm")
    ),
    *(
        CubeCase(f"copy_{way}_align_v2", "float16", same, types=HALF, sized=strided, sub=1, chip=A5)
        for way in ("gm_to_ubuf", "ubuf_to_gm")
    ),
    CubeCase(
        *("copy_cbuf_to_bt", "float32", same),
        types=TILES,
        sized=lambda edge: {"len_burst": edge * edge},
        lanes=8,
        chip=A5,
    ),
    CubeCase(
        *("copy_cbuf_to_fbuf_v2", "uint64", same),
        sized=lambda edge: {"len_burst": edge * edge},
        lanes=8,
        chip=A5,
    ),
    CubeCase(
        *("bitwise_xor", "int16", np.bitwise_xor),
        types={"dtype": "int16"},
        sized=lambda edge: {"count": 128 * edge * edge},
        lanes=128,
        sub=1,
        chip=A5,
    ),
    CubeCase("load_gm_to_ca", "float16", same, sized=lambda edge: {"repeat": edge * edge}),
    CubeCase("copy_cbuf_to_gm", "float16", same, sized=runs),
    CubeCase(
        *("copy_cbuf_to_matrix_cc", "float32", same),
        types={"src_type": "float32", "dst_type": "float32"},
        sized=lambda edge: {"n_burst": edge, "len_burst": 32 * edge},
    ),
    CubeCase(
        *("copy_gm_to_cbuf_pad", "int16", spread, {"mode": 2}),
        sized=lambda edge: {"n_burst": edge, "len_burst": 16 * edge},
        lanes=16,
    ),
    CubeCase(
        *("load_cbuf_to_cb_sp", "int8", same),
        sized=lambda edge: {"repeat": edge * edge},
        lanes=512,
    ),
    CubeCase(
        *("img2colv2_cbuf_to_ca_v2", "float16", same),
        types=HALF,
        sized=expanded,
        chip=A5,
        before=(SetFmatrix(l1_height=16, l1_width=8), SetL3dRptV2(dst_stride=8)),
    ),
    *(
        CubeCase(
            *(f"copy_matrix_cc_to_{target}_v2", "float32", lambda x, _: x.astype(np.float16)),
            {"quant_pre": "F322F16", "nz2nd_en": True},
            types=TILES,
            sized=tile_of,
            chip=A5,
        )
        for target in ("gm", "cbuf")
    ),
)
CASES = (
    Case("vadd", "float16", lambda x, y: x + y),
    Case("vadd", "float32", lambda x, y: x + y),
    Case("vadd", "int16", lambda x, y: x + y),
    Case("vmuls", "float32", lambda x, _: x * np.float32(3), {"value": THREE}),
    Case("vshl", "int16", lambda x, _: x << 3, {"distance": 3}),
    Case("vexp", "float32", lambda x, _: np.exp(x)),
    Case("vsqrt", "float32", lambda x, _: np.sqrt(x)),
    Case(
        *("vaxpy", "float32", lambda x, y: x * np.float32(3) + y, {"value": THREE}),
        types={"dst_type": "float32", "src_type": "float32"},
    ),
    Case("vconv_f322f16", "float32", lambda x, _: x.astype(np.float16), types={}),
    Case("vconv_f162s8", "float16", lambda x, _: np.rint(x).astype(np.int8), types={}),
    Case("vcadd", "float32", lambda x, _: x.reshape(-1, 64).sum(axis=1)),
    Case("vcmax", "float32", lambda x, _: x.reshape(-1, 64).max(axis=1)),
    Case("vcgmax", "float32", lambda x, _: x.reshape(-1, 8).max(axis=1)),
    Case("vcmpv_lt", "float32", lambda x, y: np.packbits(x < y, bitorder="little")),
    Case("vsel", "float32", lambda x, y: np.where(x < y, x, y)),
    Case("vector_dup", "float32", lambda x, _: np.full(x.shape, 3, x.dtype), {"value": THREE}),
    Case("vcopy", "uint16", lambda x, _: x.copy()),
    Case("vbrcb", "uint32", lambda x, _: np.repeat(x, 8), lanes=8),
    Case("vgather", "float32", lambda x, y: x.take(y.view(np.int32), mode="clip"), offsets=True),
    Case("vreducev2", "uint16", keep_alternate, {"pattern": 1}),
    Case("vbitsort", "float32", sort_each, lanes=32),
    *CUBE_CASES,
    *FURTHER_CASES,
)
NAMES = {case.name for case in CASES}
