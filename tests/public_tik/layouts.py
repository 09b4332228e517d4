"""Operators that lay a tensor out anew: fractals, channels by sixteen, and blocks of space."""

from typing import Any

import numpy as np

from .case import AI_CORE, BUILT_IN, CONTRIB, F16, F32, GEKOWA, Array, Case, tensor, whole


def fractal_z_3d(x: Array) -> Array:
    """Lay [D, H, W, C, N] out as [D * C1 * H * W, N1, 16 of N, 16 of C]."""
    depth, height, width, channels, count = x.shape
    split = x.reshape(depth, height, width, channels // 16, 16, count // 16, 16)
    fractals = depth * (channels // 16) * height * width
    return split.transpose(0, 3, 1, 2, 5, 6, 4).reshape(fractals, count // 16, 16, 16)


def to_nz(x: Array) -> Array:
    """Lay a matrix out as columns of 16 x 16 fractals: [N1, M1, 16 of M, 16 of N]."""
    m, n = x.shape
    return x.reshape(m // 16, 16, n // 16, 16).transpose(2, 0, 1, 3)


def from_nz(x: Array) -> Array:
    """Return the matrix that lies in columns of fractals."""
    n1, m1, rows, columns = x.shape
    return x.transpose(1, 2, 0, 3).reshape(m1 * rows, n1 * columns)


def fractals_of_rows(x: Array, columns: int) -> Array:
    """Lay a matrix out as rows of fractals 16 high: [M1, N1, 16 of M, columns of N]."""
    m, n = x.shape
    return x.reshape(m // 16, 16, n // columns, columns).transpose(0, 2, 1, 3)


def to_ndc1hwc0(x: Array) -> Array:
    """Lay [N, C, D, H, W] out as [N, D, C1, H, W, 16 of C]."""
    n, c, d, h, w = x.shape
    return x.reshape(n, c // 16, 16, d, h, w).transpose(0, 3, 1, 4, 5, 2)


def from_ndc1hwc0(x: Array) -> Array:
    """Return [N, C, D, H, W] of [N, D, C1, H, W, 16 of C]."""
    n, d, c1, h, w, c0 = x.shape
    return x.transpose(0, 2, 5, 1, 3, 4).reshape(n, c1 * c0, d, h, w)


def space_to_depth(x: Array, block: int) -> Array:
    """Put each block of space of NHWC into its channels, rows of the block first."""
    n, h, w, c = x.shape
    split = x.reshape(n, h // block, block, w // block, block, c)
    return split.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // block, w // block, -1)


def depth_to_space(x: Array, block: int) -> Array:
    """Undo `space_to_depth`."""
    n, h, w, c = x.shape
    split = x.reshape(n, h, w, block, block, c // block**2)
    return split.transpose(0, 1, 3, 2, 4, 5).reshape(n, h * block, w * block, -1)


def shuffle_channel(x: Array, groups: int) -> Array:
    """Deal the channels of NCHW out: one from each group in turn."""
    n, c, h, w = x.shape
    return x.reshape(n, groups, c // groups, h, w).transpose(0, 2, 1, 3, 4).reshape(x.shape)


def nd_to_zn(x: Array) -> Array:
    """Lay a matrix of int8 out as fractals of 32 x 16, each by columns."""
    k, n = x.shape
    return x.reshape(k // 32, 32, n // 16, 16).transpose(0, 2, 3, 1)


def channels_by_16(x: Array) -> Array:
    """Lay NCHW out as [N, C1, H, W, 16 of C], the missing channels 0."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, -c % 16), (0, 0), (0, 0)))
    return padded.reshape(n, -1, 16, h, w).transpose(0, 1, 3, 4, 2)


def open_channels(x: Array) -> Array:
    """Lay NCHW out as `channels_by_16` does, NaN where no channel lies."""
    lying: Array = channels_by_16(x).astype(float)
    lying[channels_by_16(np.ones_like(x)) == 0] = np.nan
    return lying


def channels_together(x: Array, channels: int) -> Array:
    """Return NCHW of [N, C1, H, W, 16 of C], without the channels that only pad."""
    n, c1, h, w, c0 = x.shape
    return x.transpose(0, 1, 4, 2, 3).reshape(n, c1 * c0, h, w)[:, :channels]


def padded_nz(x: Array) -> Array:
    """Lay a matrix out as `to_nz` does, its edges filled with 0 up to 16."""
    return to_nz(np.pad(x, [(0, -size % 16) for size in x.shape]))


def _tiled(channels: int, axis: int) -> Case:
    """Return a case that repeats NCHW three times along an axis; channels that pad are open."""
    shape, times = (2, channels, 4, 16), tuple(3 if i == axis else 1 for i in range(4))
    out = tuple(size * by for size, by in zip(shape, times, strict=True))

    def by_16(n: int, c: int, h: int, w: int) -> dict[str, Any]:
        lying = (n, -(-c // 16), h, w, 16)
        return tensor(lying, F16, "NC1HWC0", ori_shape=(n, c, h, w), ori_format="NCHW")

    return Case(
        folder=CONTRIB,
        module="tile_caffe",
        function="tile_caffe",
        category="layout",
        soc="Ascend310",
        arguments=(by_16(*shape), by_16(*out), axis, 3),
        draw=whole(shape),
        feed=lambda x: [channels_by_16(x)],
        oracle=lambda x: open_channels(np.tile(x, times)),
    )


def _gekowa(
    name: str, shape: tuple[int, ...], source: str, to: tuple[int, ...], target: str, **more: Any
) -> Case:
    """Return a case of a layout's change: the operator takes both formats by name."""
    dtype = more.pop("dtype", F16)
    known = {"category": "layout", "draw": whole(shape, dtype=dtype)} | more
    return Case(
        repository=GEKOWA,
        folder=AI_CORE,
        module=f"impl.{name}",
        function=name,
        arguments=(tensor(shape, dtype, source), tensor(to, dtype, target), source, target),
        **known,
    )


_DHWCN = (2, 3, 2, 32, 32)
_NCDHW = (32, 32, 2, 3, 2)
_NDHWC = (32, 2, 3, 2, 32)
_FRACTALS = (24, 2, 16, 16)


def weights_of(z: Array) -> Array:
    """Return the [2, 3, 2, 32, 32] weights that `fractal_z_3d` laid out."""
    split = z.reshape(2, 2, 3, 2, 2, 16, 16)
    return split.transpose(0, 2, 3, 1, 6, 4, 5).reshape(_DHWCN)


def _trans_data(
    shape: tuple[int, ...], source: str, to: tuple[int, ...], target: str, **more: Any
) -> Case:
    return Case(
        module="impl.trans_data",
        function="trans_data",
        category="layout",
        arguments=(tensor(shape, F16, source), tensor(to, F16, target), source, target),
        draw=whole(shape),
        outputs=(to,),
        **more,
    )


def _helper(name: str) -> tuple[str, ...]:
    return (f"{BUILT_IN}/impl/{name}.py",)


CASES = (
    _gekowa(
        "dhwcn_2_fractal_z_3d", _DHWCN, "DHWCN", _FRACTALS, "FRACTAL_Z_3D", oracle=fractal_z_3d
    ),
    _gekowa(
        "ncdhw_2_fractal_z_3d",
        _NCDHW,
        "NCDHW",
        _FRACTALS,
        "FRACTAL_Z_3D",
        oracle=lambda x: fractal_z_3d(x.transpose(2, 3, 4, 1, 0)),
    ),
    _gekowa(
        "ndhwc_2_fractal_z_3d",
        _NDHWC,
        "NDHWC",
        _FRACTALS,
        "FRACTAL_Z_3D",
        oracle=lambda x: fractal_z_3d(x.transpose(1, 2, 3, 4, 0)),
        category="data movement",
    ),
    _gekowa("fractal_z_3d_2_dhwcn", _FRACTALS, "FRACTAL_Z_3D", _DHWCN, "DHWCN", oracle=weights_of),
    _gekowa(
        "fractal_z_3d_2_ncdhw",
        _FRACTALS,
        "FRACTAL_Z_3D",
        _NCDHW,
        "NCDHW",
        oracle=lambda z: weights_of(z).transpose(4, 3, 0, 1, 2),
    ),
    _gekowa(
        "fractal_z_3d_2_ndhwc",
        _FRACTALS,
        "FRACTAL_Z_3D",
        _NDHWC,
        "NDHWC",
        oracle=lambda z: weights_of(z).transpose(4, 0, 1, 2, 3),
    ),
    _gekowa(
        "ncdhw_2_ndc1hwc0",
        _NCDHW,
        "NCDHW",
        (32, 2, 2, 3, 2, 16),
        "NDC1HWC0",
        oracle=to_ndc1hwc0,
    ),
    _gekowa(
        "ndc1hwc0_2_ncdhw",
        (2, 2, 2, 6, 8, 16),
        "NDC1HWC0",
        (2, 32, 2, 6, 8),
        "NCDHW",
        oracle=from_ndc1hwc0,
    ),
    _gekowa(
        "nc1hwc0_2_nz",
        (32, 2, 3, 2, 16),
        "NC1HWC0",
        (12, 2, 16, 16),
        "FRACTAL_Z",
        oracle=lambda x: to_nz(x.reshape(32, 192)),
        category="elementwise",
    ),
    _gekowa(
        "nd_2_zn_int8",
        (64, 64),
        "ND",
        (2, 4, 16, 32),
        "FRACTAL_Z",
        oracle=nd_to_zn,
        dtype="int8",
    ),
    _gekowa(
        "nd_2_nz",
        (64, 96),
        "ND",
        (6, 4, 16, 16),
        "FRACTAL_NZ",
        oracle=to_nz,
        category="elementwise",
    ),
    _gekowa(
        "nz_2_nd",
        (6, 4, 16, 16),
        "FRACTAL_NZ",
        (64, 96),
        "ND",
        oracle=from_nz,
        category="elementwise",
    ),
    Case(
        repository=GEKOWA,
        folder=AI_CORE,
        module="impl.depth_to_space",
        function="depth_to_space",
        category="data movement",
        arguments=(
            tensor((2, 3, 4, 64), F16, "NHWC"),
            tensor((2, 6, 8, 16), F16, "NHWC"),
            2,
            "NHWC",
        ),
        draw=whole((2, 3, 4, 64)),
        oracle=lambda x: depth_to_space(x, 2),
    ),
    Case(
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
        feed=lambda x: [np.concatenate([x.reshape(-1), np.zeros(32, F16)])],
        oracle=lambda x: space_to_depth(x, 2),
    ),
    Case(
        module="impl.shuffle_channel",
        function="shuffle_channel",
        category="elementwise",
        arguments=(tensor((2, 12, 4, 4), F16, "NCHW"), tensor((2, 12, 4, 4), F16, "NCHW"), 3),
        draw=whole((2, 12, 4, 4)),
        oracle=lambda x: shuffle_channel(x, 3),
    ),
    _trans_data(
        (2, 20, 6, 8),
        "NCHW",
        (2, 2, 6, 8, 16),
        "NC1HWC0",
        oracle=channels_by_16,
        covers=_helper("trans_data_positive_source_ntc"),
    ),
    _trans_data(
        (2, 2, 6, 8, 16),
        "NC1HWC0",
        (2, 20, 6, 8),
        "NCHW",
        oracle=lambda x: channels_together(x, 20),
        covers=_helper("trans_data_negative_target_ntc"),
    ),
    _trans_data(
        (40, 24),
        "ND",
        (2, 3, 16, 16),
        "FRACTAL_NZ",
        oracle=padded_nz,
        covers=_helper("trans_data_positive_source_tc"),
    ),
    _tiled(32, 1),
    _tiled(32, 3),
    _tiled(24, 1),
    Case(
        module="impl.hwc_2_chw",
        function="hwc_2_chw",
        category="layout",
        arguments=((7 * 31 * 31, 128), F32),
        draw=whole((7 * 31 * 31, 128), dtype=F32),
        oracle=lambda x: x.T,
        note="for 128 to 240 channels, which its caller has",
    ),
)
