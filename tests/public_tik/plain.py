"""Operators whose results NumPy gives in a line: slices, padding, weights' layouts, products."""

import numpy as np

from .case import (
    CONTRIB,
    F16,
    F32,
    PYTORCH,
    Array,
    Case,
    Drawn,
    ints,
    tensor,
    whole,
)

_MINDSPORE = "tools/custom_operator_sample/TIK/Mindspore/mindspore"


def _boxes(*counts: int) -> "Drawn":
    """Return a draw's boxes, each from its lower to its upper corner."""
    rng = np.random.default_rng(counts)
    made = []
    for count in counts:
        low = rng.integers(0, 40, (count, 2))
        made.append(np.concatenate([low, low + rng.integers(1, 30, (count, 2))], 1).astype(F16))
    return made


def overlaps(boxes: Array, others: Array) -> Array:
    """Return the overlap of each box with each other one over their union, [others, boxes]."""
    a, b = boxes.astype(float)[None], others.astype(float)[:, None]
    low, high = np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., 2:], b[..., 2:])
    shared = np.prod(np.maximum(high - low, 0), -1)
    areas = [np.prod(x[..., 2:] - x[..., :2], -1) for x in (a, b)]
    return shared / (areas[0] + areas[1] - shared)


def by_four_channels(hwcn: Array) -> Array:
    """Return weights [h, w, c, n] by fractals, of which K counts h, w and 4 channels."""
    h, w, c, n = hwcn.shape
    padded = np.zeros((h, w, 4, n), hwcn.dtype)
    padded[:, :, :c] = hwcn
    k = -(-h * w * 4 // 16) * 16
    rows = np.zeros((k, n), hwcn.dtype)
    rows[: h * w * 4] = padded.reshape(-1, n)
    return rows.reshape(k // 16, 16, n // 16, 16).transpose(0, 2, 3, 1)


def fractals(x: Array) -> Array:
    """Return a matrix by columns of 16 x 16 fractals."""
    m, n = x.shape
    return x.reshape(m // 16, 16, n // 16, 16).transpose(2, 0, 1, 3)


def gathered_blocks(x: Array) -> Array:
    """Return NHWC with each 2 x 2 window in the channels."""
    n, h, w, c = x.shape
    cut = x.reshape(n, h // 2, 2, w // 2, 2, c)
    return cut.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // 2, w // 2, 4 * c)


_WEIGHTS = {
    "hwcn": ("layout", (3, 3, 3, 32), (0, 1, 2, 3)),
    "nchw": ("data movement", (32, 3, 3, 3), (2, 3, 1, 0)),
    "nhwc": ("elementwise", (32, 3, 3, 3), (1, 2, 3, 0)),
}

CASES = (
    Case(
        folder=PYTORCH,
        module="pt_iou",
        function="iou",
        category="elementwise",
        arguments=(tensor((48, 4)), tensor((32, 4)), tensor((32, 48)), "iou"),
        draw=lambda _: _boxes(48, 32),
        oracle=overlaps,
        tolerance=0.01,
    ),
    Case(
        module="impl.strided_slice_for_last_dim",
        function="strided_slice_last_dim",
        category="layout",
        arguments=((640, 32), F16, (640, 4), [0, 5], [640, 9], [1, 1], "kernel"),
        draw=whole((640, 32)),
        oracle=lambda x: x[:, 5:9],
    ),
    Case(
        module="impl.strided_slice_last_dim_one",
        function="strided_slice_last_dim_one",
        category="data movement",
        arguments=((640, 32), F32, (640, 1), [0, 5], "kernel"),
        draw=whole((640, 32), dtype=F32),
        oracle=lambda x: x[:, 5],
    ),
    Case(
        module="impl.strided_slice_last_dim_with_vreducev2",
        function="strided_slice_last_dim_with_vreducev2",
        category="elementwise",
        soc="Ascend310P3",
        arguments=((640, 32), F16, [0, 5], [640, 9], [1, 1], "kernel"),
        draw=whole((640, 32)),
        oracle=lambda x: x[:, 5:9],
    ),
    Case(
        module="impl.strided_slice_for_last_dim_mte",
        function="strided_slice_last_dim_mte",
        category="data movement",
        arguments=((2400, 100), F16, (2400, 40), [0, 5], "kernel"),
        draw=whole((2400, 100)),
        oracle=lambda x: x[:, 5:45],
    ),
    Case(
        folder="ops/contrib/tbe",
        module="impl.fasterrcnn_map_tik",
        function="fasterrcnn_map_tik",
        category="layout",
        soc="Ascend310",
        arguments=(tensor((1, 100, 4)), tensor((1, 100, 4))),
        draw=whole((1, 100, 4), low=0, high=300),
        oracle=lambda x: x / np.array([600, 1024, 600, 1024]),
        tolerance=0.001,
    ),
    Case(
        folder=CONTRIB,
        module="batch_matmul",
        function="batch_matmul",
        category="layout",
        soc="Ascend310",
        arguments=(tensor((128, 4, 16)), tensor((128, 16, 16)), tensor((128, 4, 16))),
        draw=whole((128, 4, 16), (128, 16, 16), low=-4, high=5),
        oracle=lambda a, b: a.astype(F32) @ b.astype(F32),
    ),
    Case(
        folder=f"{_MINDSPORE}/impl",
        module="batch_matmul_impl",
        function="batch_matmul",
        category="reduction",
        arguments=(tensor((8, 128, 128), F32),) * 3,
        draw=whole((8, 128, 128), (8, 128, 128), dtype=F32),
        oracle=lambda a, b: a @ b.transpose(0, 2, 1),
    ),
    Case(
        folder="tools/custom_operator_sample/TIK/Tensorflow/tbe",
        module="impl.space_to_depth",
        function="space_to_depth",
        category="data movement",
        arguments=(
            tensor((2, 4, 6, 16), F16, "NHWC"),
            None,
            tensor((2, 2, 3, 64), F16, "NHWC"),
            2,
            "NHWC",
        ),
        draw=whole((2, 4, 6, 16)),
        feed=lambda x: [np.append(x.reshape(-1), np.zeros(32, F16))],
        oracle=gathered_blocks,
    ),
    Case(
        repository="kungfu-team/mindspore",
        folder="mindspore/ops/_op_impl/_custom_op",
        module="matmul_cube_fracz_right_mul_impl",
        function="CusMatMulCubeFraczRightMul",
        category="cube",
        arguments=(
            *(tensor((4, 4, 16, 16), F16, "FRACTAL_NZ"),) * 2,
            tensor((1,), F32),
            None,
            tensor((4, 4, 16, 16), F32, "FRACTAL_NZ"),
        ),
        draw=lambda rng: [*(ints(rng, (64, 64)) for _ in "ab"), np.full(1, 0.5, F32)],
        feed=lambda a, b, c: [fractals(a), fractals(b), c],
        oracle=lambda a, b, c: fractals(a.astype(F32) @ b.astype(F32) * c[0]),
    ),
    *(
        Case(
            module=f"impl.{name}_2_fractal_z_c04",
            function=f"{name}_2_fractal_z_c04",
            category=category,
            arguments=(
                tensor(shape),
                tensor((3, 2, 16, 16), layout="FRACTAL_Z_C04"),
                name.upper(),
                "FRACTAL_Z_C04",
            ),
            draw=whole(shape),
            oracle=lambda x, order=order: by_four_channels(x.transpose(order)),
        )
        for name, (category, shape, order) in _WEIGHTS.items()
    ),
    Case(
        module="impl.pad_align_reorder_ub",
        function="pad_align",
        category="data movement",
        arguments=([64, 64], [[0, 0], [16, 16]], F16, "kernel"),
        draw=whole((64, 64)),
        oracle=lambda x: np.pad(x, ((0, 0), (16, 16))),
    ),
    Case(
        module="impl.pad_v2_align_reorder_ub",
        function="pad_align",
        category="data movement",
        arguments=([64, 64], [[0, 0], [16, 16]], F16, "kernel"),
        draw=lambda rng: [ints(rng, (64, 64)), np.full(16, 3, F16)],
        oracle=lambda x, y: np.pad(x, ((0, 0), (16, 16)), constant_values=y[0]),
    ),
    Case(
        module="impl.quantize",
        function="quantize",
        category="elementwise",
        arguments=(
            tensor((3, 4, 5, 6), F32),
            tensor((1,), F32),
            tensor((1,), "int8"),
            tensor((3, 4, 5, 6), "int8"),
            "torch.qint8",
            1,
        ),
        draw=lambda rng: [
            ints(rng, (3, 4, 5, 6), F32, -40, 41),
            np.full(1, 0.25, F32),
            np.full(1, 3, "int8"),
        ],
        oracle=lambda x, scale, zero: np.clip(np.rint(x / scale[0]) + zero[0], -128, 127),
    ),
)
