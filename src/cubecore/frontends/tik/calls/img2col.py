"""TIK's image to column and back, conv2d on top of it, and the calls that only re-lay elements."""

from collections.abc import Sequence
from typing import Any

from cubecore.frontends.tik.calls.matmul import FractalShape, MatmulCalls, Tiles, require_room
from cubecore.frontends.tik.trace.arguments import bound
from cubecore.frontends.tik.trace.errors import refuse, require_immediate
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.frontends.tik.trace.values import TikValue, integer
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies_joined_core import BroadcastUbToCc
from cubecore.isa.mte.load3d_v1 import Col2img, Img2colCbufToCa, Img2colCbufToCb, Img2colCbufToUb
from cubecore.numerics.conversion import bits_of
from cubecore.units import FRACTAL_BYTES, FRACTAL_ROWS

_TO = {Mem.L0A: Img2colCbufToCa, Mem.L0B: Img2colCbufToCb, Mem.UB: Img2colCbufToUb}
_PADS = ("pad_left", "pad_right", "pad_top", "pad_bottom")
_POSITIONS = (
    *("fetch_filter_w", "fetch_filter_h", "left_top_w", "left_top_h", "stride_w", "stride_h"),
    *("filter_w", "filter_h", "dilation_filter_w", "dilation_filter_h"),
)
_MOST_CHANNELS, _MOST_SIDE, _MOST_FILTER, _MOST_STRIDE = 256, 4096, 255, 63
"""C1, H and W (and Cout), Kh and Kw, and the strides."""


class Img2ColCalls(MatmulCalls):
    """load3dv1, col2img, conv2d, broadcast_ub_to_l0c, v4dtrans."""

    def load3dv1(
        self,
        dst: Tensor,
        src: Tensor,
        pad: Sequence[TikValue],
        l1_h: TikValue,
        l1_w: TikValue,
        c1_index: TikValue,
        *numbers: TikValue,
        **named: TikValue,
    ) -> None:
        """Move fractals of a feature map's columns from L1 to L0A, L0B or UB.

        Behind c1_index: fetch_filter_w, fetch_filter_h, left_top_w, left_top_h, stride_w, stride_h,
        filter_w, filter_h, dilation_filter_w, dilation_filter_h, jump_offset, repeat_mode,
        repeat_time, and csize and pad_value where they are not 0.
        """
        call = "load3dv1"
        if src.mem is not Mem.L1 or dst.mem not in _TO:
            raise refuse(call, "move L1 to L0A, L0B or UB", f"{src.mem.label} to {dst.mem.label}")
        names = (*_POSITIONS, "jump_offset", "repeat_mode", "repeat_time")
        given = bound(call, names, numbers, named, {"csize": 0, "pad_value": 0})
        csize, value = given.pop("csize"), given.pop("pad_value")
        if csize:
            raise refuse(f"{call}.csize", "be 0", csize)
        parameters = _map_of(call, pad, l1_h, l1_w, given, "repeat_time")
        parameters |= {
            "dtype": dst.record,
            "c1_index": integer(c1_index, f"{call}.c1_index"),
            "pad_value": bits_of(value or 0, dst.record),
        }
        self.trace.issue(_TO[dst.mem], parameters, (dst, src), call)

    def col2img(
        self,
        dst: Tensor,
        src: Tensor,
        pad: Sequence[TikValue],
        l1_h: TikValue,
        l1_w: TikValue,
        *numbers: TikValue,
        **named: TikValue,
    ) -> None:
        """Add fractals of 16 places x 16 channels to a feature map in UB.

        Behind l1_w: fetch_filter_w, fetch_filter_h, left_top_w, left_top_h, stride_w, stride_h,
        filter_w, filter_h, dilation_filter_w, dilation_filter_h, repeat_times.
        """
        call = "col2img"
        given = bound(call, (*_POSITIONS, "repeat_times"), numbers, named)
        parameters = _map_of(call, pad, l1_h, l1_w, given, "repeat_times")
        self.trace.issue(Col2img, parameters | {"dtype": dst.record}, (dst, src), call)

    def broadcast_ub_to_l0c(
        self,
        dst: Tensor,
        src: Tensor,
        nburst: TikValue,
        burst: TikValue,
        src_gap: TikValue,
        dst_gap: TikValue,
    ) -> None:
        """Copy pieces of 16 elements to all rows of a fractal of L0C each."""
        call = "broadcast_ub_to_l0c"
        if dst.record is not src.record:
            raise refuse(f"{call}.src", f"have dst's type {dst.dtype}", src.dtype)
        parameters = {
            "dtype": dst.record,
            "n_burst": integer(nburst, f"{call}.nburst"),
            "len_burst": integer(burst, f"{call}.burst"),
            "src_gap": integer(src_gap, f"{call}.src_gap"),
            "dst_gap": integer(dst_gap, f"{call}.dst_gap"),
        }
        self.trace.issue(BroadcastUbToCc, parameters, (dst, src), call)

    def v4dtrans(
        self, chw2hwc: TikValue, dst: Tensor, src: Tensor, hw_size: TikValue, c_size: TikValue
    ) -> None:
        """Transpose [C, HW] to [HW, C], or back where chw2hwc is False."""
        parameters = {
            "dtype": dst.record,
            "chw2hwc": bool(chw2hwc),
            "hw_size": integer(hw_size, "v4dtrans.hw_size"),
            "c_size": integer(c_size, "v4dtrans.c_size"),
        }
        self.trace.issue(instruction_named("v4dtrans"), parameters, (dst, src), "v4dtrans")

    def conv2d(
        self,
        dst: Tensor,
        feature_map: Tensor,
        weight: Tensor,
        fm_shape: Sequence[int],
        kernel_shape: Sequence[int],
        stride: Sequence[int],
        pad: Sequence[int],
        dilation: Sequence[int],
        pad_value: TikValue = 0,
        init_l1out: bool = True,
        bias: TikValue | None = None,
    ) -> None:
        """Dst [Cout / 16, Ho * Wo rounded up to 16, 16] = the convolution, or added to it.

        feature_map [C1, H, W, C0] and weight [C1, Kh, Kw, Cout, C0] lie in L1; stride and dilation
        are [h, w], pad is [left, right, top, bottom]. It is `matmul` with the map's columns as a.
        """
        if bias is not None:
            raise refuse("conv2d.bias", "be None", type(bias).__name__, "give it to fixpipe")
        patches = _patches(
            feature_map, fm_shape, kernel_shape, stride=stride, pad=pad, dilation=dilation
        )
        # A convolution is a matmul: rows are the places of the filter on the map,
        # columns the output channels, and K is all that one place of the filter covers.
        patches["pad_value"] = bits_of(pad_value or 0, feature_map.record)
        down, along = _positions_of(patches)
        depth, columns = kernel_shape[0] * kernel_shape[1] * kernel_shape[2], kernel_shape[3]
        c0 = feature_map.record.c0
        shape = FractalShape(down * along, depth * c0, columns, c0)
        self.require_operands("conv2d", dst, feature_map, weight)
        room = feature_map.record.bytes_of(fm_shape[0] * fm_shape[1] * fm_shape[2] * fm_shape[3])
        require_room("conv2d", dst, feature_map, weight, shape, a_bytes=room)
        self.multiply_tiles(
            _Patches(self, dst, feature_map, weight, shape, patches, along), init_l1out
        )


class _Patches(Tiles):
    """Tiles of a convolution: a is loaded as the map's columns."""

    def __init__(
        self,
        kernel: MatmulCalls,
        dst: Tensor,
        a: Tensor,
        b: Tensor,
        shape: FractalShape,
        patches: dict[str, Any],
        along: int,
    ) -> None:
        super().__init__(kernel, dst, a, b, shape)
        self._patches, self._along = patches, along

    def load_a(self, l0a: Tensor, m: range, k: range) -> None:
        """Load places m of the map, at points k of the filter."""
        p = self._patches
        # A row of the columns' matrix is a place of the filter on the map; its K axis runs over the
        # channel blocks, in each over the filter's points, in each over C0 channels. One k is thus
        # a point of one block, and one m is 16 places, of which the instruction takes the first.
        points = p["filter_w"] * p["filter_h"]
        block, point = divmod(k.start, points)
        down, along = divmod(point, p["filter_w"])
        for step, row in enumerate(m):
            y, x = divmod(row * FRACTAL_ROWS, self._along)
            at = {
                # Places count from the corner of the padded map, positions from that of the map
                # itself.
                "left_top_w": x * p["stride_w"] - p["pad_left"],
                "left_top_h": y * p["stride_h"] - p["pad_top"],
                "fetch_filter_w": along,
                "fetch_filter_h": down,
                "c1_index": block,
                "repeat": len(k),
            }
            addresses = (l0a.address + step * len(k) * FRACTAL_BYTES, self.a.address)
            self.kernel.trace.issue(Img2colCbufToCa, p | at, (l0a, self.a), "conv2d", addresses)


def _map_of(
    call: str,
    pad: Sequence[TikValue],
    high: TikValue,
    wide: TikValue,
    given: dict[str, Any],
    repeat: str,
) -> dict[str, Any]:
    """Return the parameters of a map, a filter and its places."""
    if len(pad) != len(_PADS):
        raise refuse(f"{call}.pad", "be left, right, top and bottom", f"{len(pad)} numbers")
    named = dict(zip(_PADS, pad, strict=True)) | {"height": high, "width": wide} | given
    named["repeat"] = named.pop(repeat)
    return {name: integer(value, f"{call}.{name}") for name, value in named.items()}


def _patches(
    feature_map: Tensor,
    fm_shape: Sequence[int],
    kernel_shape: Sequence[int],
    *,
    stride: Sequence[int],
    pad: Sequence[int],
    dilation: Sequence[int],
) -> dict[str, Any]:
    """Return the parameters of load3d for a convolution.

    Raises
    ------
    RequestError
        If the number is not an immediate, or is out of the range that the page gives.
    """
    shapes = {"fm_shape": (fm_shape, 4), "kernel_shape": (kernel_shape, 5)}
    shapes |= {"stride": (stride, 2), "pad": (pad, 4), "dilation": (dilation, 2)}
    for name, (numbers, count) in shapes.items():
        if len(numbers) != count:
            raise refuse(f"conv2d.{name}", f"be {count} numbers", len(numbers))
    c1, high, wide, c0 = fm_shape
    if c0 != feature_map.record.c0 or kernel_shape[4] != c0 or kernel_shape[0] != c1:
        need = f"have C0 = {feature_map.record.c0} and the C1 of the other"
        raise refuse("conv2d.kernel_shape", need, f"{tuple(kernel_shape)} for {tuple(fm_shape)}")
    require_immediate(c1, "conv2d.fm_shape[0]", 1, _MOST_CHANNELS)
    require_immediate(kernel_shape[3], "conv2d.kernel_shape[3]", FRACTAL_ROWS, _MOST_SIDE)
    parameters = {
        "height": require_immediate(high, "conv2d.fm_shape[1]", 1, _MOST_SIDE),
        "width": require_immediate(wide, "conv2d.fm_shape[2]", 1, _MOST_SIDE),
        "filter_h": require_immediate(kernel_shape[1], "conv2d.kernel_shape[1]", 1, _MOST_FILTER),
        "filter_w": require_immediate(kernel_shape[2], "conv2d.kernel_shape[2]", 1, _MOST_FILTER),
    }
    for axis, index in (("h", 0), ("w", 1)):
        parameters[f"stride_{axis}"] = require_immediate(
            stride[index], f"conv2d.stride[{index}]", 1, _MOST_STRIDE
        )
        parameters[f"dilation_filter_{axis}"] = require_immediate(
            dilation[index], f"conv2d.dilation[{index}]", 1, _MOST_FILTER
        )
    for index, name in enumerate(_PADS):
        parameters[name] = require_immediate(pad[index], f"conv2d.pad[{index}]", 0, _MOST_FILTER)
    return parameters | {"dtype": feature_map.record, "repeat_mode": 0, "jump_offset": 1}


def _positions_of(p: dict[str, Any]) -> tuple[int, int]:
    """Return the places of the filter down and along the map."""
    # What the dilated filter, (size - 1) * dilation + 1 long, leaves of the padded map is how far
    # it can be moved.
    down = p["height"] + p["pad_top"] + p["pad_bottom"]
    down -= p["dilation_filter_h"] * (p["filter_h"] - 1) + 1
    along = p["width"] + p["pad_left"] + p["pad_right"]
    along -= p["dilation_filter_w"] * (p["filter_w"] - 1) + 1
    if down < 0 or along < 0:
        need = "fit the padded map with its dilation"
        raise refuse("conv2d.kernel_shape", need, f"{p['filter_h']} x {p['filter_w']}")
    return down // p["stride_h"] + 1, along // p["stride_w"] + 1
