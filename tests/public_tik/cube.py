"""Operators of the Cube: distances between vectors, convolution, attention."""

from typing import Any

import numpy as np

from .case import (
    F16,
    F32,
    I32,
    INDEX,
    INDEX_FOLDER,
    SAMPLES,
    SAMPLES_FOLDER,
    Array,
    Case,
    Drawn,
    ints,
    tensor,
)
from .layouts import fractals_of_rows, from_nz, to_nz

_COUNT = 4096
_TOLD = np.array([_COUNT] + [0] * 7, "uint32")
_SOC = "Ascend310P3"
_SCALE = 0.01
"""The factor by which distances of int8 vectors are shrunk to fit float16."""


def dots(queries: Array, base: Array) -> Array:
    """Return the products of every query with every base vector."""
    return queries.astype(F32) @ base.astype(F32).T


def squared_distances(queries: Array, base: Array, norms: Array) -> Array:
    """Return squared distances, where `norms` stands for the squares of the base vectors."""
    squares = (queries.astype(F32) ** 2).sum(1)
    return squares[:, None] - 2 * dots(queries, base) + norms


def signs(bits: Array) -> Array:
    """Return 1 for a bit that is set and -1 for another, the lowest bit of a byte first."""
    return np.unpackbits(bits, axis=1, bitorder="little") * 2.0 - 1


def convolve(x: Array, weights: Array) -> Array:
    """Convolve NC1HWC0 by [C1, H, W, N, 16 of C], stride 1, without padding."""
    count, _, high, wide, _ = x.shape
    _, rows, columns, channels, _ = weights.shape
    out = np.zeros((count, channels, high - rows + 1, wide - columns + 1), F32)
    for i in range(out.shape[2]):
        for j in range(out.shape[3]):
            window = x[:, :, i : i + rows, j : j + columns].astype(F32)
            out[:, :, i, j] = np.einsum("bchwk,chwnk->bn", window, weights.astype(F32))
    return out.reshape(count, channels // 16, 16, *out.shape[2:]).transpose(0, 1, 3, 4, 2)


def attention(query: Array, key: Array, value: Array) -> Array:
    """Return softmax(Q K^T) V."""
    scores = query.astype(float) @ key.astype(float).transpose(0, 2, 1)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ value.astype(float)


def diagonal_products(rows: Array, blocks: Array, factor: Array) -> Array:
    """Multiply each 128 columns by the block of 128 x 128 that lies on the diagonal there."""
    cut = rows.astype(F32).reshape(len(rows), -1, 128).transpose(1, 0, 2)
    own = [blocks[i : i + 128, i : i + 128].astype(F32) for i in range(0, len(blocks), 128)]
    return (cut @ np.array(own)).transpose(1, 0, 2).reshape(rows.shape) * factor[0]


def _columns(x: Array) -> Array:
    """Lay each matrix of a batch out as columns of 16 x 16 fractals."""
    b, m, n = x.shape
    return x.reshape(b, m // 16, 16, n // 16, 16).transpose(0, 3, 1, 2, 4)


def _index(name: str, arguments: tuple[Any, ...], **more: Any) -> Case:
    known = {"category": "cube", "soc": _SOC, "folder": INDEX_FOLDER}
    return Case(
        repository=INDEX,
        module=f"impl.{name}",
        function=name,
        arguments=arguments,
        **(known | more),
    )


def _floats(rng: np.random.Generator) -> Drawn:
    return [ints(rng, (16, 128), F16, -4, 5), ints(rng, (_COUNT, 128), F16, -4, 5)]


def _bytes(rng: np.random.Generator) -> Drawn:
    return [ints(rng, (16, 64), "int8"), ints(rng, (_COUNT, 64), "int8")]


_QUERIES = tensor((16, 128))
_BASE = tensor((_COUNT // 16, 8, 16, 16))
_OUT = tensor((16, _COUNT))
_FLAG = tensor((2, 16), "uint16")
_MASK = np.full((16, _COUNT // 8), 255, "uint8")
_INT8 = (
    tensor((16, 64), "int8"),
    tensor((16, _COUNT // 8), "uint8"),
    tensor((_COUNT // 16, 2, 16, 32), "int8"),
)
_TAIL = (
    tensor((2, 8), "uint32"),
    _OUT,
    tensor((16, _COUNT // 32)),
    tensor((16, 16), "uint16"),
)
_DISTANCES = "the distances, not the best of each block"
_NORMED = "the query's square was added"
_SHRUNK = "the factor of 0.01 was added"


def _cosines(name: str) -> Case:
    def draw(rng: np.random.Generator) -> Drawn:
        of_queries = (rng.integers(1, 9, 16) / 64).astype(F16)
        return [*_bytes(rng), of_queries, (rng.integers(1, 9, _COUNT) / 8).astype(F16)]

    def oracle(queries: Array, base: Array, of_queries: Array, of_base: Array) -> list[Any]:
        scales = of_queries.astype(F32)[:, None] * of_base.astype(F32)
        return [dots(queries, base) * scales * _SCALE, None, None]

    return _index(
        name,
        (*_INT8, tensor((16,)), tensor((_COUNT,)), *_TAIL),
        draw=draw,
        feed=lambda q, b, nq, nb: [
            q,
            _MASK,
            fractals_of_rows(b, 32),
            nq,
            nb,
            np.stack([_TOLD, _TOLD]),
        ],
        oracle=oracle,
        tolerance=0.005,
        note=_DISTANCES,
        changed=_SHRUNK,
    )


def _int8_distances(name: str, *covers: str) -> Case:
    def feed(queries: Array, base: Array) -> Drawn:
        norms = (base.astype(I32) ** 2).sum(1)
        fractals = fractals_of_rows(base, 32)
        return [queries, _MASK, fractals, norms, np.stack([_TOLD, _TOLD])]

    def oracle(queries: Array, base: Array) -> list[Any]:
        apart = queries.astype(I32)[:, None] - base.astype(I32)[None]
        return [(apart**2).sum(2) * _SCALE, None, None]

    return _index(
        name,
        (*_INT8, tensor((_COUNT,), I32), *_TAIL),
        draw=_bytes,
        feed=feed,
        oracle=oracle,
        tolerance=0.03,
        covers=tuple(f"{INDEX_FOLDER}/impl/{name}.py" for name in covers),
        note=_DISTANCES,
        changed="roots were taken at first",
    )


def _with_norms(rng: np.random.Generator) -> Drawn:
    return [*_floats(rng), ints(rng, (_COUNT,))]


def _binary(rng: np.random.Generator) -> Drawn:
    bits = rng.integers(0, 256, (_COUNT, 32)).astype("uint8")
    return [ints(rng, (16, 256), F16, -4, 5), bits]


CASES = (
    _index(
        "distance_flat_ip",
        (_QUERIES, _BASE, tensor((8,), "uint32"), tensor((16 * _COUNT,), F32)),
        draw=_floats,
        feed=lambda q, b: [q, fractals_of_rows(b, 16), _TOLD],
        oracle=dots,
        covers=(f"{INDEX_FOLDER}/impl/distance_flat_ip_common.py",),
    ),
    _index(
        "distance_flat_ip_maxs",
        (
            _QUERIES,
            tensor((16, 512), "uint8"),
            _BASE,
            tensor((2, 8), "uint32"),
            _OUT,
            tensor((16, 128)),
            _FLAG,
        ),
        draw=_floats,
        feed=lambda q, b: [
            q,
            np.zeros((16, 512), "uint8"),
            fractals_of_rows(b, 16),
            np.stack([_TOLD, _TOLD]),
        ],
        oracle=lambda q, b: [dots(q, b), None, None],
        note=_DISTANCES,
    ),
    _index(
        "distance_compute_flat",
        (_QUERIES, _BASE, tensor((_COUNT,)), _OUT, _FLAG),
        draw=_with_norms,
        feed=lambda q, b, norms: [q, fractals_of_rows(b, 16), norms],
        oracle=lambda q, b, norms: [squared_distances(q, b, norms), None],
        changed=_NORMED,
    ),
    _index(
        "distance_flat_l2_mins",
        (_QUERIES, _BASE, tensor((_COUNT,)), _OUT, tensor((16, _COUNT // 16)), _FLAG),
        draw=_with_norms,
        feed=lambda q, b, norms: [q, fractals_of_rows(b, 16), norms],
        oracle=lambda q, b, norms: [squared_distances(q, b, norms), None, None],
        note=_DISTANCES,
        changed=_NORMED,
    ),
    _cosines("distance_int8_cos_maxs"),
    _cosines("distance_int8_cos_maxs_with_mask"),
    _int8_distances("distance_int8_l2_mins", "distance_int8_l2_common"),
    _int8_distances("distance_int8_l2_mins_with_mask"),
    _index(
        "distance_binary_float",
        (
            tensor((16, 256)),
            tensor((_COUNT // 16, 1, 16, 32), "uint8"),
            tensor((2, 8), "uint32"),
            _OUT,
            tensor((16, _COUNT // 32)),
            _FLAG,
        ),
        draw=_binary,
        feed=lambda q, bits: [q, fractals_of_rows(bits, 32), np.stack([_TOLD, _TOLD])],
        oracle=lambda q, bits: [dots(q, signs(bits)), None, None],
        note=_DISTANCES,
    ),
    _index(
        "corr_compute",
        (tensor((1, 64, 128, 16)), tensor((2,), "uint64"), tensor((128, 128)), _FLAG),
        draw=lambda rng: [ints(rng, (1024, 128), F16, -3, 4)],
        feed=lambda x: [
            x.reshape(1, 64, 16, 128).transpose(0, 1, 3, 2),
            np.array([1024, 1024], "uint64"),
        ],
        oracle=lambda x: [dots(x.T, x.T), None],
        tolerance=2,
    ),
    _index(
        "l2_norm_flat_sub",
        (tensor((64, 64)), tensor((64, 16), F32), tensor((4096,))),
        draw=lambda rng: [ints(rng, (64, 64))],
        oracle=lambda x: [None, x.reshape(4, 16, 4, 16).transpose(2, 0, 1, 3).reshape(-1)],
        note="the layout of its second output only",
        changed="written after a first result",
    ),
    _index(
        "dist_accum",
        (tensor((64, 16)), tensor((64,)), tensor((16,), "uint16")),
        category="reduction",
        soc="Ascend310",
        draw=lambda rng: [ints(rng, (64, 16))],
        oracle=lambda x: [x.astype(F32).sum(1)],
    ),
    Case(
        repository=SAMPLES,
        folder=SAMPLES_FOLDER,
        module="conv2d_tik",
        function="conv2d_tik",
        category="cube",
        soc="Ascend310",
        arguments=(
            tensor((2, 1, 8, 8, 16), F16, "NC1HWC0"),
            tensor(
                (1, 3, 3, 128, 16),
                F16,
                "FRACTAL_Z",
                ori_shape=(128, 16, 3, 3),
                ori_format="NCHW",
            ),
            tensor((2, 8, 6, 6, 16)),
            [1, 1, 1, 1],
            [0, 0, 0, 0],
            [1, 1, 1, 1],
        ),
        draw=lambda rng: [
            ints(rng, (2, 1, 8, 8, 16), F16, -4, 5),
            ints(rng, (1, 3, 3, 128, 16), F16, -4, 5),
        ],
        oracle=convolve,
    ),
    Case(
        repository="verylucky01/MindIE-SD",
        folder="csrc/ops/tik/tbe/impl",
        module="flash_attention_tik",
        function="flash_attention_tik",
        category="cube",
        soc=_SOC,
        arguments=(
            tensor((2, 4, 8, 16, 16), F16, "FRACTAL_NZ", ori_shape=(2, 128, 64), ori_format="ND"),
        )
        * 4,
        draw=lambda rng: [(rng.standard_normal((2, 128, 64)) / 2).astype(F16) for _ in range(3)],
        feed=lambda *matrices: [_columns(matrix) for matrix in matrices],
        oracle=lambda *matrices: _columns(attention(*matrices)),
        tolerance=0.03,
        covers=(
            "csrc/ops/tik/tbe/impl/flash_attention_fwd.py",
            "csrc/ops/tik/tbe/impl/tik_ops_utils.py",
        ),
    ),
    Case(
        repository="kungfu-team/mindspore",
        folder="mindspore/ops/_op_impl/_custom_op",
        module="matmul_cube_dense_right_impl",
        function="CusMatMulCubeDenseRight",
        category="cube",
        arguments=(
            tensor((128, 63, 16, 16), layout="FRACTAL_NZ"),
            tensor((128, 128, 16, 16), layout="FRACTAL_NZ"),
            tensor((1,), F32),
            None,
            tensor((128, 63, 16, 16), F32, "FRACTAL_NZ"),
        ),
        draw=lambda rng: [
            ints(rng, (128, 63, 16, 16), F16, -2, 3),
            ints(rng, (128, 128, 16, 16), F16, -2, 3),
            np.full(1, 0.5, F32),
        ],
        oracle=lambda a, b, factor: to_nz(diagonal_products(from_nz(a), from_nz(b), factor)),
    ),
)
