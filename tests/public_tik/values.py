"""Operators that compute element by element, reduce, sort or pool."""

import numpy as np

from .case import (
    BUILT_IN,
    CONTRIB,
    F16,
    F32,
    I32,
    PYTORCH,
    SAMPLES,
    SAMPLES_FOLDER,
    TENSORFLOW,
    Array,
    Case,
    Drawn,
    ints,
    orders,
    tensor,
    whole,
)


def lstm_state_grad(
    c: Array, dht: Array, dct: Array, i: Array, j: Array, f: Array, o: Array, tanh_c: Array
) -> Drawn:
    """Return the gradients of an LSTM cell's gates, and of the state before it.

    The cell is c' = f c + i j, h = o tanh(c'); i, f and o are sigmoids, j is a tanh, all given
    after their activation. Their gradients are before it.
    """
    state = dht * o * (1 - tanh_c**2) + dct
    gates = [
        state * j * i * (1 - i),
        state * i * (1 - j**2),
        state * c * f * (1 - f),
        dht * tanh_c * o * (1 - o),
    ]
    return [np.concatenate(gates, 0), state * f]


def s_shaped_relu(
    x: Array, upper: Array, upper_slope: Array, lower: Array, lower_slope: Array
) -> Array:
    """Go on with another slope above one threshold and below another; keep what is between."""
    above = upper + upper_slope * (x.astype(F32) - upper)
    below = lower + lower_slope * (x.astype(F32) - lower)
    return np.where(x >= upper, above, np.where(x <= lower, below, x))


def softmax(x: Array) -> Array:
    """Return the exponentials over their sum."""
    e = np.exp(x.astype(float) - x.max())
    return e / e.sum()


def in_top(predictions: Array, targets: Array, k: int) -> Array:
    """Say of each row whether fewer than k classes are before its target."""
    scored = zip(predictions, targets, strict=True)
    return np.array([(row > row[target]).sum() < k for row, target in scored], "uint8")


def pool_windows(x: Array, size: int, stride: int) -> Array:
    """Return the maxima of square windows of NC1HWC0, without padding."""
    rows = (x.shape[2] - size) // stride + 1
    columns = (x.shape[3] - size) // stride + 1
    out = np.zeros((*x.shape[:2], rows, columns, x.shape[4]), x.dtype)
    for i in range(rows):
        for j in range(columns):
            top, left = i * stride, j * stride
            out[:, :, i, j] = x[:, :, top : top + size, left : left + size].max((2, 3))
    return out


def pool_grad(x: Array, y: Array, grad: Array, size: int, stride: int) -> Array:
    """Give each window's gradient to the element that is its maximum; windows add up."""
    out = np.zeros(x.shape, F32)
    for i in range(y.shape[2]):
        for j in range(y.shape[3]):
            window = np.s_[:, :, i * stride : i * stride + size, j * stride : j * stride + size]
            largest = x[window] == y[:, :, i : i + 1, j : j + 1]
            out[window] += largest * grad[:, :, i : i + 1, j : j + 1]
    return out


def _pool(size: int, edge: int) -> Case:
    inner = tensor((1, 1, edge, edge, 16), F16, "NC1HWC0", ori_format="NCHW")
    outer = tensor((1, 1, 4, 4, 16), F16, "NC1HWC0")

    def draw(rng: np.random.Generator) -> Drawn:
        places = np.stack([rng.permutation(edge**2) for _ in range(16)], 1)
        x = places.reshape(1, 1, edge, edge, 16).astype(F16)
        return [x, pool_windows(x, size, 2), ints(rng, (1, 1, 4, 4, 16))]

    arguments = (inner, outer, outer, tensor((1, 1, edge, edge, 16), F16, "NC1HWC0"))
    windows = ([1, 1, size, size], [1, 1, 2, 2], "VALID", [0, 0, 0, 0], "NCHW", False, False)
    return Case(
        module="impl.max_pool_v3_grad",
        function="max_pool_v3_grad",
        category="pooling/im2col",
        arguments=(*arguments, *windows),
        draw=draw,
        oracle=lambda x, y, grad: pool_grad(x, y, grad, size, 2),
    )


def _sort(module: str, folder: str, **more: bool) -> Case:
    down = more.get("descending", False)

    def oracle(x: Array) -> Drawn:
        order = np.argsort(-x if down else x, -1)
        return [np.take_along_axis(x, order, -1), order]

    return Case(
        folder=folder,
        module=module,
        function="sort",
        category="sort/proposal",
        soc="Ascend310" if down else "Ascend910A",
        arguments=(tensor((3, 40)), tensor((3, 40)), tensor((3, 40), I32), -1, down),
        draw=orders(3, 40),
        oracle=oracle,
    )


def _top_k(rng: np.random.Generator) -> Drawn:
    return orders(4, 200)(rng)


def _indices(x: Array) -> Drawn:
    """Feed places as float16, and what float16 leaves of them: the operator's own second input."""
    places = np.arange(4096)
    rounded = places.astype(F16)
    return [x, np.concatenate([rounded, (places - rounded.astype(F32)).astype(F16)])]


def _window_of_products(a: Array, b: Array) -> Array:
    """Return the products of the first 256 elements where they are written; leave the rest."""
    out = np.full(32 * 60 * 1024, np.nan, F32)
    out[32768 : 32768 + 256] = (a * b).reshape(-1)[:256]
    return out


_NZ = (1, 4, 16, 16)
_FIVE = tensor((1, 1, 4, 4, 16), F16, "NC1HWC0")

CASES = (
    Case(
        module="impl.arg_max_d",
        function="arg_max_d",
        category="reduction",
        arguments=(tensor((4, 40)), tensor((4,), I32), -1),
        draw=orders(4, 40),
        oracle=lambda x: x.argmax(-1),
    ),
    Case(
        module="impl.arg_min_d",
        function="arg_min_d",
        category="reduction",
        arguments=(tensor((7, 60)), tensor((7,), I32), 1),
        draw=orders(7, 60),
        oracle=lambda x: x.argmin(-1),
    ),
    Case(
        module="impl.in_top_k",
        function="in_top_k",
        category="reduction",
        arguments=(tensor((16, 16), F32), tensor((16,), I32), tensor((16,), "uint8"), 3),
        draw=lambda rng: [*orders(16, 16, F32)(rng), rng.integers(0, 16, 16).astype(I32)],
        oracle=lambda predictions, targets: in_top(predictions, targets, 3),
    ),
    Case(
        module="impl.population_count",
        function="population_count",
        category="reduction",
        arguments=(tensor((64,), "int16"), tensor((64,), "uint8")),
        draw=whole((64,), dtype="int16", low=-(2**15), high=2**15),
        oracle=lambda x: np.array([(int(value) & 0xFFFF).bit_count() for value in x], "uint8"),
    ),
    Case(
        module="impl.reduce_max_d_tik",
        function="reduce_max_d_tik",
        category="elementwise",
        arguments=(tensor((4, 640), F32), tensor((4,), F32), -1),
        draw=whole((4, 640), dtype=F32, low=-5000, high=5000),
        oracle=lambda x: x.max(-1),
    ),
    Case(
        module="impl.square_sum_all",
        function="square_sum_all",
        category="scatter/atomic",
        arguments=(*[tensor((1000,), F32)] * 2, *[tensor((1,), F32)] * 2),
        draw=whole((1000,), (1000,), dtype=F32),
        oracle=lambda x, y: [(x**2).sum(keepdims=True), (y**2).sum(keepdims=True)],
    ),
    Case(
        module="impl.cumsum_d",
        function="cumsum_d",
        category="elementwise",
        arguments=(tensor((6, 5, 32), F32), tensor((6, 5, 32), F32), 1, True, False),
        draw=whole((6, 5, 32), dtype=F32),
        oracle=lambda x: np.stack([x[:, :at].sum(1) for at in range(x.shape[1])], 1),
        covers=(f"{BUILT_IN}/impl/cum_computer.py",),
    ),
    Case(
        module="impl.basic_lstm_cell_c_state_grad",
        function="basic_lstm_cell_c_state_grad",
        category="elementwise",
        arguments=(
            *[tensor(_NZ, F32, "FRACTAL_NZ")] * 8,
            tensor((4, 4, 16, 16), F16, "FRACTAL_NZ"),
            tensor(_NZ, F32, "FRACTAL_NZ"),
            1.0,
            "tanh",
        ),
        draw=lambda rng: [rng.random(_NZ).astype(F32) for _ in range(8)],
        oracle=lstm_state_grad,
        tolerance=0.001,
    ),
    Case(
        folder=TENSORFLOW,
        module="add",
        function="add",
        category="elementwise",
        arguments=(tensor((16, 2, 32)),) * 3,
        draw=whole((16, 2, 32), (16, 2, 32)),
        oracle=lambda x, y: x + y,
    ),
    Case(
        folder=CONTRIB,
        module="clip",
        function="clip",
        category="elementwise",
        soc="Ascend310",
        arguments=(tensor((1, 2, 5, 6)), tensor((1, 2, 5, 6)), -3.0, 4.0),
        draw=whole((1, 2, 5, 6, 16)),
        oracle=lambda x: np.minimum(np.maximum(x, -3), 4),
    ),
    Case(
        folder=CONTRIB,
        module="tik_ceil",
        function="tik_ceil",
        category="elementwise",
        soc="Ascend310",
        arguments=(tensor((1, 1, 4, 6, 16), F16, "NC1HWC0"),) * 2,
        draw=lambda rng: [ints(rng, (1, 1, 4, 6, 16)) / np.float16(4)],
        oracle=np.ceil,
    ),
    Case(
        folder=CONTRIB,
        module="s_re_lu",
        function="s_re_lu",
        category="elementwise",
        soc="Ascend310",
        arguments=(_FIVE, *[tensor((16,))] * 4, _FIVE, False),
        draw=lambda rng: [
            ints(rng, (1, 1, 4, 4, 16)),
            *(np.full(16, value, F16) for value in (3, 0.5, -2, 0.25)),
        ],
        oracle=s_shaped_relu,
    ),
    Case(
        repository=SAMPLES,
        folder=SAMPLES_FOLDER,
        module="softmax_tik",
        function="softmax_tik",
        category="reduction",
        chip="Ascend310P3",
        arguments=(tensor((256,)), tensor((256,))),
        draw=whole((256,), low=-4, high=5),
        oracle=softmax,
        tolerance=0.001,
        note="where the sum of the exponentials, up to 256 e^4, fits float16",
    ),
    Case(
        repository="Ascend/IndexSDK",
        folder="ivfsp_utils/src/ops_IVFSP/tbe",
        module="impl.fp_to_fp16",
        function="fp_to_fp16",
        category="elementwise",
        soc="Ascend310P3",
        arguments=(tensor((64, 128), F32), tensor((64, 128)), tensor((2, 16), "uint16")),
        draw=lambda rng: [(ints(rng, (64, 128), F32) / 7).astype(F32)],
        oracle=lambda x: [x.astype(F16), None],
        note="without its flags of progress",
    ),
    Case(
        module="impl.adaptive_max_pool2d",
        function="adaptive_max_pool2d",
        category="elementwise",
        soc="Ascend310",
        arguments=(
            tensor((1, 1, 6, 6, 16), F16, "NC1HWC0"),
            tensor((1, 1, 3, 3, 16), F16, "NC1HWC0"),
            tensor((1, 1, 3, 3, 16), I32, "NC1HWC0"),
            [3, 3],
        ),
        draw=whole((1, 1, 6, 6, 16)),
        oracle=lambda x: [pool_windows(x, 2, 2), None],
        note="the maxima, not their places",
    ),
    Case(
        module="impl.max_pool_with_argmax",
        function="max_pool_with_argmax",
        category="pooling/im2col",
        arguments=(
            tensor((1, 2, 16, 16, 16), F16, "NC1HWC0"),
            tensor((1, 2, 8, 8, 16), F16, "NC1HWC0"),
            tensor((1, 2, 4, 5, 16), "uint16", "NC1HWC0"),
            (1, 2, 2, 1),
            (1, 2, 2, 1),
            "VALID",
        ),
        draw=whole((1, 2, 16, 16, 16), low=-50, high=50),
        oracle=lambda x: [pool_windows(x, 2, 2), None],
        note="the maxima, not their places",
    ),
    _pool(2, 8),
    _pool(3, 9),
    _sort("impl.sort", BUILT_IN),
    _sort("impl.sort", BUILT_IN, descending=True),
    _sort("sort", PYTORCH),
    Case(
        module="impl.sort_v2",
        function="sort_v2",
        category="sort/proposal",
        arguments=(tensor((4, 4064)), tensor((4, 4064)), -1, True),
        draw=whole((4, 4064), low=-2000, high=2001),
        oracle=lambda x: -np.sort(-x, 1),
        note="downwards, rows of 4,064; otherwise it writes past its rows and its output",
    ),
    Case(
        module="impl.cross",
        function="cross",
        category="elementwise",
        arguments=(*[tensor((3, 20), F32)] * 3, 0),
        draw=whole((3, 20), (3, 20), dtype=F32),
        oracle=lambda x, y: np.cross(x, y, axis=0),
        note="for 240 or 256 B; it reads more of less, and more from another place",
    ),
    Case(
        module="impl.top_k_d",
        function="top_k_d",
        category="sort/proposal",
        arguments=(
            tensor((4, 200)),
            tensor((8192,)),
            tensor((4, 16)),
            tensor((4, 16), I32),
            16,
            True,
            -1,
            True,
        ),
        draw=_top_k,
        feed=_indices,
        oracle=lambda x: [-np.sort(-x, -1)[:, :16], np.argsort(-x, -1)[:, :16]],
    ),
    Case(
        repository="Tinkerver/AIBench",
        folder="operator_generate",
        module="vector_workload_generate",
        function="tg",
        category="generator",
        arguments=(None, None),
        generator=("2",),
        draw=whole((1, 1, 1024), (1, 1, 1024)),
        feed=lambda a, b: [
            np.tile(np.concatenate([a.repeat(32, 1), b.repeat(32, 1)], 1), (60, 1, 1)).reshape(-1)
        ],
        oracle=_window_of_products,
        note="the program that it writes, by its own arithmetic: it has no documentation",
    ),
)
