"""Operators that move, join or update: what comes out is what went in, in another place."""

import numpy as np

from .case import (
    BUILT_IN,
    CONTRIB,
    F16,
    F32,
    I32,
    TENSORFLOW,
    Array,
    Case,
    Drawn,
    ints,
    tensor,
    whole,
)


def added_at(variable: Array, at: Array, updates: Array) -> Array:
    """Add each row of the updates to the row that its index names, repeats too."""
    out = variable.copy()
    for place, row in zip(at.reshape(-1), updates, strict=True):
        out[place] += row
    return out


def added_along_1(variable: Array, at: Array, updates: Array) -> Array:
    """Add each column of the updates to the column that its index names."""
    out = variable.copy()
    for column, place in enumerate(at):
        out[:, place] += updates[:, column]
    return out


def replaced_at(variable: Array, at: Array, rows: Array) -> Array:
    """Put each row where its index names."""
    out = variable.copy()
    for place, row in zip(at, rows, strict=True):
        out[place] = row
    return out


def offsets(*shapes: Array, along: int) -> Drawn:
    """Return where each of the shapes begins when their tensors are joined along an axis."""
    out, at = [], 0
    for shape in shapes:
        start = np.zeros_like(shape)
        start[along] = at
        out.append(start)
        at += shape[along]
    return out


def bags(table: Array, indices: Array, starts: Array, _weights: Array) -> Array:
    """Sum the rows of each bag; a bag ends where the next one starts."""
    ends = [*starts[1:], len(indices)]
    return np.stack([table[indices[a:b]].sum(0) for a, b in zip(starts, ends, strict=True)])


def diagonal_blocks(x: Array) -> Array:
    """Put square blocks on the diagonal of a matrix that is 0 elsewhere."""
    count, size, _ = x.shape
    out = np.zeros((count * size, count * size), x.dtype)
    for i, block in enumerate(x):
        out[i * size : (i + 1) * size, i * size : (i + 1) * size] = block
    return out


def _rows_to_add(rng: np.random.Generator) -> Drawn:
    at = rng.integers(0, 33, (20, 1)).astype(I32)
    return [ints(rng, (33, 5, 64), F32), at, ints(rng, (20, 5, 64), F32)]


def _shapes(rng: np.random.Generator) -> Drawn:
    return [np.array([2, 3, k, 5], I32) for k in rng.integers(1, 20, 3)]


CASES = (
    Case(
        module="impl.tensor_move",
        function="tensor_move",
        category="data movement",
        arguments=(tensor((5, 300), F32), tensor((5, 300), F32)),
        draw=whole((5, 300), dtype=F32),
        oracle=lambda x: x,
    ),
    Case(
        module="impl.parallel_concat",
        function="parallel_concat",
        category="data movement",
        soc="Ascend310",
        arguments=([tensor((1, 1024))] * 3, tensor((3, 1024)), [3, 1024], 3),
        draw=whole(*[(1, 1024)] * 3),
        oracle=lambda *x: np.concatenate(x),
    ),
    Case(
        module="impl.concat_offset_d",
        function="concat_offset_d",
        category="elementwise",
        soc="Ascend310",
        arguments=([tensor((4,), I32)] * 3, [tensor((4,), I32)] * 3, 2),
        draw=_shapes,
        oracle=lambda *shapes: offsets(*shapes, along=2),
    ),
    Case(
        module="impl.split_d",
        function="split_d",
        category="layout",
        arguments=(tensor((64, 12)), [tensor((64, 4))] * 3, 1, 3),
        draw=whole((64, 12)),
        oracle=lambda x: [x[:, :4], x[:, 4:8], x[:, 8:]],
        covers=(f"{BUILT_IN}/impl/split_last_dim.py",),
    ),
    Case(
        module="impl.reverse_v2_d",
        function="reverse_v2_d",
        category="elementwise",
        soc="Ascend310",
        arguments=(tensor((2, 6, 16), F32), tensor((2, 6, 16), F32), [1]),
        draw=whole((2, 6, 16), dtype=F32),
        oracle=lambda x: x[:, ::-1],
    ),
    Case(
        module="impl.roll",
        function="roll",
        category="data movement",
        arguments=(tensor((16, 32), F32), tensor((16, 32), F32), [3], [0]),
        draw=whole((16, 32), dtype=F32),
        oracle=lambda x: np.concatenate([x[-3:], x[:-3]]),
        note="along its first axis; along another it rolls the whole tensor as one row",
    ),
    Case(
        module="impl.inplace_update",
        function="inplace_update",
        category="data movement",
        soc="Ascend310",
        arguments=(
            tensor((32, 16), I32),
            tensor((1,), I32),
            tensor((1, 16), I32),
            tensor((32, 16), I32),
        ),
        draw=lambda rng: [
            ints(rng, (32, 16), I32),
            rng.integers(0, 32, 1).astype(I32),
            ints(rng, (1, 16), I32),
        ],
        feed=lambda x, at, row: [x, np.repeat(at, 8), row],
        oracle=replaced_at,
        note="for one row; of several it puts the first one only",
    ),
    Case(
        module="impl.inplace_index_add",
        function="inplace_index_add",
        category="elementwise",
        arguments=(
            tensor((16, 8, 32), F32),
            tensor((5,), I32),
            tensor((16, 5, 32), F32),
            tensor((16, 8, 32), F32),
            1,
        ),
        draw=lambda rng: [
            ints(rng, (16, 8, 32), F32),
            np.array([1, 4, 0, 4, 7], I32),
            ints(rng, (16, 5, 32), F32),
        ],
        oracle=added_along_1,
        in_place={0: 0},
    ),
    Case(
        folder=TENSORFLOW,
        module="scatter_nd_add",
        function="scatter_nd_add",
        category="elementwise",
        arguments=(
            tensor((33, 5, 64), F32),
            tensor((20, 1), I32),
            tensor((20, 5, 64), F32),
            tensor((33, 5, 64), F32),
        ),
        draw=_rows_to_add,
        oracle=added_at,
        in_place={0: 0},
    ),
    Case(
        module="impl.scatter_non_aliasing_add",
        function="scatter_non_aliasing_add",
        category="elementwise",
        arguments=(
            tensor((33, 8), F32),
            tensor((20, 1), I32),
            tensor((20, 8), F32),
            tensor((33, 8), F32),
        ),
        draw=lambda rng: [
            ints(rng, (33, 8), F32),
            rng.integers(0, 33, (20, 1)).astype(I32),
            ints(rng, (20, 8), F32),
        ],
        oracle=added_at,
        in_place={0: 0},
    ),
    Case(
        module="impl.embedding_dense_grad",
        function="embedding_dense_grad",
        category="scatter/atomic",
        arguments=(
            tensor((40, 32), F32),
            tensor((40,), I32),
            tensor((23, 32), F32),
            23,
            -1,
            False,
        ),
        draw=lambda rng: [ints(rng, (40, 32), F32), rng.integers(0, 23, 40).astype(I32)],
        oracle=lambda grad, at: added_at(np.zeros((23, 32), F32), at, grad),
    ),
    Case(
        module="impl.embedding_bag",
        function="embedding_bag",
        category="elementwise",
        soc="Ascend310",
        arguments=(
            tensor((100, 3), F32),
            tensor((10,), I32),
            tensor((3,), I32),
            tensor((10,), F32),
            tensor((3, 3), F32),
            "sum",
            False,
            False,
            False,
        ),
        draw=lambda rng: [
            ints(rng, (100, 3), F32),
            rng.integers(0, 100, 10).astype(I32),
            np.array([0, 4, 7], I32),
            np.ones(10, F32),
        ],
        oracle=bags,
    ),
    Case(
        repository="kungfu-team/mindspore",
        folder="mindspore/ops/_op_impl/_custom_op",
        module="matrix_combine_impl",
        function="CusMatrixCombine",
        category="data movement",
        arguments=(tensor((2, 128, 128), F32), tensor((256, 256), F32)),
        draw=whole((2, 128, 128), dtype=F32),
        oracle=diagonal_blocks,
    ),
    Case(
        folder=CONTRIB,
        module="image_pad",
        function="image_pad",
        category="data movement",
        soc="Ascend310",
        arguments=(tensor((4, 6, 16)), tensor((6, 8, 16)), [[1, 1], [1, 1], [0, 0]], 0),
        draw=whole((4, 6, 16)),
        oracle=lambda x: np.pad(x, ((1, 1), (1, 1), (0, 0))),
    ),
    Case(
        folder=CONTRIB,
        module="tik_rank",
        function="tik_rank",
        category="data movement",
        soc="Ascend310",
        arguments=(tensor((4, 3, 2)), tensor((1,), I32)),
        draw=whole((4, 3, 2)),
        oracle=lambda x: np.array([x.ndim]),
    ),
    Case(
        module="impl.n_p_u_alloc_float_status",
        function="n_p_u_alloc_float_status",
        category="data movement",
        arguments=(tensor((8,), F32),),
        draw=lambda _rng: [],
        oracle=lambda: np.zeros(8, F32),
    ),
    Case(
        module="impl.masked_fill_range",
        function="masked_fill_range",
        category="elementwise",
        arguments=(
            tensor((64,)),
            tensor((1, 1), I32),
            tensor((1, 1), I32),
            tensor((1,)),
            tensor((64,)),
            0,
        ),
        draw=lambda rng: [
            ints(rng, (64,)),
            np.array([[5]], I32),
            np.array([[20]], I32),
            np.array([77], F16),
        ],
        oracle=lambda x, start, end, value: np.concatenate(
            [x[: start[0, 0]], np.repeat(value, (end - start)[0, 0]), x[end[0, 0] :]]
        ),
    ),
    Case(
        repository="Ascend/samples",
        folder="cplusplus/level1_single_api/4_op_dev/1_custom_op/tbe/impl",
        module="upsample_tik",
        function="upsample_tik",
        category="elementwise",
        soc="Ascend310",
        arguments=(
            tensor((1, 2, 4, 5, 16), F16, "NC1HWC0"),
            tensor((1, 2, 8, 10, 16), F16, "NC1HWC0"),
            1,
            2,
            2,
        ),
        draw=whole((1, 2, 4, 5, 16)),
        oracle=lambda x: x.repeat(2, 2).repeat(2, 3),
    ),
)
