"""TIK's calls between images and columns, conv2d above all, against plain loops."""

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.trace.language import Dprofile

GM, UB, L1, L1OUT, L0A, L0C = (
    *("global", "local.UB", "local.L1", "local.L1OUT", "local.L0A", "local.L0C"),
)
CLOUD = Dprofile("v100", "cloud")
RNG = np.random.default_rng(51)


def convolved(image, weight, stride, pad, dilation):
    """[Ho, Wo, Cout] of an image [H, W, C] and weights [Kh, Kw, C, Cout], by loops."""
    (high, wide, _), (kh, kw, _, cout) = image.shape, weight.shape
    left, right, top, bottom = pad
    ho = (high + top + bottom - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    wo = (wide + left + right - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    out = np.zeros((ho, wo, cout), np.int64)
    for y in range(ho):
        for x in range(wo):
            for i in range(kh):
                for j in range(kw):
                    row = y * stride[0] - top + i * dilation[0]
                    column = x * stride[1] - left + j * dilation[1]
                    if 0 <= row < high and 0 <= column < wide:
                        out[y, x] += image[row, column] @ weight[i, j]
    return out


CONVOLUTIONS = [
    # h, w, c1, kh, kw, cout, stride, pad, dilation
    (8, 8, 1, 3, 3, 32, (1, 1), (0, 0, 0, 0), (1, 1)),
    (7, 9, 2, 3, 2, 16, (2, 1), (1, 2, 0, 1), (1, 1)),
    (9, 8, 1, 2, 3, 48, (1, 2), (2, 1, 1, 0), (3, 2)),
    (24, 24, 8, 3, 3, 16, (1, 1), (1, 1, 1, 1), (1, 1)),  # more than L0A holds
]


@pytest.mark.parametrize("dtype", ["float16", "int8"])
@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.thinned(4)
def test_a_convolution(case, dtype):
    high, wide, c1, kh, kw, cout, stride, pad, dilation = case
    c0, result = (16, "float32") if dtype == "float16" else (32, "int32")
    image = RNG.integers(-4, 5, (high, wide, c1 * c0))
    weight = RNG.integers(-4, 5, (kh, kw, c1 * c0, cout))
    want = convolved(image, weight, stride, pad, dilation)
    ho, wo, _ = want.shape
    t = Tik(CLOUD)
    shapes = {"fm": (c1, high, wide, c0), "w": (c1, kh, kw, cout, c0)}
    given, held = {}, {}
    for name, shape in shapes.items():
        given[name] = t.Tensor(dtype, shape, GM, name)
        held[name] = t.Tensor(dtype, shape, L1, f"{name}_l1")
        size = int(np.prod(shape)) * held[name].record.size_bytes
        t.data_move(held[name], given[name], 0, 1, size // 32, 0, 0)
    rows = -(-ho * wo // 16) * 16
    out = t.Tensor(result, (cout // 16, ho * wo, 16), GM, "out")
    held_out = t.Tensor(result, (cout // 16, rows, 16), L1OUT, "out_l1")
    options = ([*shapes["fm"]], [*shapes["w"]], [*stride], [*pad], [*dilation])
    t.conv2d(held_out, held["fm"], held["w"], *options)
    t.conv2d(held_out, held["fm"], held["w"], *options, init_l1out=False)
    t.fixpipe(out, held_out, cout // 16, ho * wo * 16 * 4 // 32, 0, 0)
    t.BuildCCE("k", list(given.values()), [out])
    feeds = {
        "fm": image.reshape(high, wide, c1, c0).transpose(2, 0, 1, 3).astype(dtype),
        "w": weight.reshape(kh, kw, c1, c0, cout).transpose(2, 0, 1, 4, 3).astype(dtype),
    }
    ran = t.launch(feeds)
    assert ran.findings == ()
    got = ran.outputs["out"].transpose(1, 0, 2).reshape(ho, wo, cout)
    assert np.array_equal(got, 2 * want)


def test_pooling_by_columns():
    t = Tik(CLOUD)
    image = RNG.integers(-99, 99, (1, 9, 9, 16)).astype(np.float16)
    x, y = t.Tensor("float16", image.shape, GM, "x"), t.Tensor("float16", (32, 16), GM, "y")
    held = t.Tensor("float16", image.shape, L1, "held")
    columns = t.Tensor("float16", (2, 16, 16), UB, "columns")
    most = t.Tensor("float16", (2, 16, 16), UB, "most")
    t.data_move(held, x, 0, 1, 81, 0, 0)
    t.vec_dup(128, most, -65504.0, 4, 8)
    for down in range(3):
        for along in range(3):
            place = (along, down, -1, -1, 2, 2, 3, 3, 1, 1, 1, 1, 2, 0, -65504.0)
            t.load3dv1(columns, held, (1, 1, 1, 1), 9, 9, 0, *place)
            t.vec_max(128, most, most, columns, 4, 8, 8, 8)
    t.data_move(y, most, 0, 1, 32, 0, 0)
    t.BuildCCE("k", [x], [y])
    ran = t.launch({"x": image})
    assert ran.findings == ()
    padded = np.pad(image[0], ((1, 1), (1, 1), (0, 0)), constant_values=-65504)
    want = [
        padded[2 * i : 2 * i + 3, 2 * j : 2 * j + 3].max((0, 1)) for i in range(5) for j in range(5)
    ]
    assert np.array_equal(ran.outputs["y"][:25], np.array(want))


def test_columns_back_to_an_image():
    t = Tik(CLOUD)
    given = RNG.integers(-99, 99, (16, 16)).astype(np.float32)
    x, y = t.Tensor("float32", (16, 16), GM, "x"), t.Tensor("float32", (6, 6, 16), GM, "y")
    fractal, image = (
        t.Tensor("float32", (16, 16), UB, "f"),
        t.Tensor("float32", (6, 6, 16), UB, "i"),
    )
    t.data_move(fractal, x, 0, 1, 32, 0, 0)
    t.vec_dup(64, image, 1.0, 9, 8)
    t.col2img(image, fractal, (0, 0, 0, 0), 6, 6, 1, 2, 0, 0, 1, 1, 3, 3, 1, 1, 1)
    t.data_move(y, image, 0, 1, 72, 0, 0)
    t.BuildCCE("k", [x], [y])
    want = np.ones((6, 6, 16), np.float32)
    for number in range(16):
        want[number // 4 + 2, number % 4 + 1] += given[number]
    assert np.array_equal(t.launch({"x": given}).outputs["y"], want)


def test_a_bias_row_in_every_row_of_l0c():
    t = Tik(CLOUD)
    x, y = t.Tensor("float32", (3, 16), GM, "x"), t.Tensor("float32", (3, 2, 16, 16), GM, "y")
    held, back = t.Tensor("float32", (3, 16), UB, "h"), t.Tensor("float32", (3, 2, 16, 16), UB, "b")
    matrix = t.Tensor("float32", (3, 2, 16, 16), L0C, "c")
    t.data_move(held, x, 0, 1, 6, 0, 0)
    for row in range(2):
        t.broadcast_ub_to_l0c(matrix[0, row, 0, 0], held, 3, 1, 0, 1)
    t.data_move(back, matrix, 0, 1, 6, 0, 0)
    t.data_move(y, back, 0, 1, 192, 0, 0)
    t.BuildCCE("k", [x], [y])
    given = RNG.integers(-9, 9, (3, 16)).astype(np.float32)
    got = t.launch({"x": given}).outputs["y"]
    assert np.array_equal(got, np.broadcast_to(given[:, None, None], (3, 2, 16, 16)))


def test_a_transpose_of_any_size():
    t = Tik(Dprofile("v200", "aic"))
    x, y = t.Tensor("float16", (5, 48), GM, "x"), t.Tensor("float16", (48, 5), GM, "y")
    held, turned = t.Tensor("float16", (5, 48), UB, "h"), t.Tensor("float16", (48, 5), UB, "t")
    t.data_move(held, x, 0, 1, 15, 0, 0)
    t.v4dtrans(True, turned, held, 48, 5)
    t.data_move(y, turned, 0, 1, 15, 0, 0)
    t.BuildCCE("k", [x], [y])
    given = RNG.integers(-9, 9, (5, 48)).astype(np.float16)
    assert np.array_equal(t.launch({"x": given}).outputs["y"], given.T)


def broken(**changes):
    """A convolution with some of its arguments replaced."""

    def body(t):
        fm, w = (
            t.Tensor("float16", (1, 8, 8, 16), L1, "fm"),
            t.Tensor("float16", (9, 16, 16), L1, "w"),
        )
        out = t.Tensor("float32", (1, 48, 16), L1OUT, "out")
        given = {"fm_shape": [1, 8, 8, 16], "kernel_shape": [1, 3, 3, 16, 16], "stride": [1, 1]}
        given |= {"pad": [0, 0, 0, 0], "dilation": [1, 1]} | changes
        t.conv2d(out, fm, w, **given)

    return body


def loaded(*numbers, **named):
    def body(t):
        held, columns = t.Tensor("float16", (64,), L1, "held"), t.Tensor("float16", (256,), UB, "c")
        t.load3dv1(columns, held, (0, 0, 0, 0), 2, 2, 0, *numbers, **named)

    return body


# ruff: noqa: E501 - whole lines
REFUSED = [
    (broken(stride=[1, 64]), "conv2d.stride[1] must be in [1, 63], got 64"),
    (broken(pad=[0, 0]), "conv2d.pad must be 4 numbers, got 2"),
    (broken(kernel_shape=[1, 9, 3, 16, 16]), "conv2d.kernel_shape must fit the padded map with its dilation, got 9 x 3"),
    (broken(kernel_shape=[2, 3, 3, 16, 16]), "conv2d.kernel_shape must have C0 = 16 and the C1 of the other, got (2, 3, 3, 16, 16) for (1, 8, 8, 16)"),
    (broken(fm_shape=[1, 0, 8, 16]), "conv2d.fm_shape[1] must be in [1, 4096], got 0"),
    (broken(bias=1), "conv2d.bias must be None, got int; give it to fixpipe"),
    (broken(stride=[1.0, 1]), "conv2d.stride[0] must be an immediate of type int, got float"),
    (loaded(0, 0, 0, 0), "load3dv1 must be given fetch_filter_w, fetch_filter_h, left_top_w, left_top_h, stride_w, stride_h, filter_w, filter_h, dilation_filter_w, dilation_filter_h, jump_offset, repeat_mode, repeat_time, got no stride_w"),
    (loaded(2, 0, 0, 0, 1, 1, 2, 2, 1, 1, 1, 0, 1), "load3dv1.fetch_filter_w must be below the filter's size 2, got 2"),
    (loaded(0, 0, 0, 0, 1, 1, 2, 2, 1, 1, 1, 0, 1, csize=1), "load3dv1.csize must be 0, got 1"),
    (lambda t: t.load3dv1(x := t.Tensor("float16", (256,), UB, "x"), x, (0, 0, 0, 0), 2, 2, 0), "load3dv1 must move L1 to L0A, L0B or UB, got UB to UB"),
    (lambda t: t.rpn_cor_diag(x := t.Tensor("uint16", (16,), UB, "x"), x, 0), "rpn_cor_diag.src1 must be the result of set_rpn_cor_ir or rpn_cor, got int"),
    (lambda t: t.v4dtrans(True, x := t.Tensor("float16", (256,), UB, "x"), x, 16, 16), "v4dtrans must run on architecture 2002, got 1001"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), REFUSED)
def test_refusals(body, message):
    with pytest.raises(RequestError) as caught:
        body(Tik(CLOUD))
    assert str(caught.value).partition(": ")[2] == message
