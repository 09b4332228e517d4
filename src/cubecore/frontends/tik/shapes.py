"""TIK's reductions and transposes over the declared vector instructions."""

from collections.abc import Callable, Sequence
from typing import Any

from cubecore.dtypes import element_type
from cubecore.frontends.tik.buffers import SCOPE_UB
from cubecore.frontends.tik.errors import refuse, require_immediate
from cubecore.frontends.tik.tensor import Tensor
from cubecore.frontends.tik.trace import touch_of
from cubecore.frontends.tik.values import integer
from cubecore.frontends.tik.vector import Vector
from cubecore.isa.spec import instruction_named
from cubecore.units import ceil_div

_BLOCKS_OF_LIST = 16
_MOST_REPEATS = 255
_EACH = ("vcadd", "vcgadd", "vcgmax", "vcgmin", "vcpadd", "vcmax", "vcmin")
_MATRIX = element_type("uint16")


class Shapes(Vector):
    """vcadd and its kin, vec_reduce_*, vnchwconv, vec_trans."""

    def reduce(
        self,
        call: str,
        name: str,
        mask: Any,
        tensors: tuple[Tensor, Tensor],
        numbers: dict[str, Any],
    ) -> None:
        """Issue a reduction of each repeat, block or pair."""
        dst, src = tensors
        if dst.record is not src.record:
            raise refuse(f"{call}.dst", f"have src's type {src.dtype}", dst.dtype)
        kind = instruction_named(name)
        parameters: dict[str, Any] = {
            n: integer(v, f"{call}.{n}") for n, v in numbers.items() if n != "repeat"
        }
        parameters["dtype"] = src.record
        width = 2048 // src.record.bits
        parameters["repeat"] = self.vectors(call, kind, mask, width, numbers["repeat"])
        self.trace.issue(kind, parameters, tensors, call)

    def vec_cpadd(
        self,
        mask: Any,
        dst: Tensor,
        src: Tensor,
        repeat_times: Any,
        dst_rep_stride: Any,
        src_rep_stride: Any,
    ) -> None:
        """Add neighbours."""
        numbers = {
            "repeat": repeat_times,
            "dst_repeat_stride": dst_rep_stride,
            "src_repeat_stride": src_rep_stride,
        }
        self.reduce("vec_cpadd", "vcpadd", mask, (dst, src), numbers)

    def vec_reduce_add(
        self,
        mask: Any,
        dst: Tensor,
        src: Tensor,
        work_tensor: Tensor,
        repeat_times: Any,
        src_rep_stride: Any,
    ) -> None:
        """Add every lane of every repeat: in each repeat pair by pair, then so its results."""
        self._reduce_all(
            "vec_reduce_add", "vcadd", mask, (dst, src, work_tensor), repeat_times, src_rep_stride
        )

    def vec_reduce_max(
        self,
        mask: Any,
        dst: Tensor,
        src: Tensor,
        work_tensor: Tensor,
        repeat_times: Any,
        src_rep_stride: Any,
        cal_index: bool = False,
    ) -> None:
        """Find the largest lane of all repeats."""
        self._require_no_index("vec_reduce_max", cal_index)
        self._reduce_all(
            "vec_reduce_max", "vcmax", mask, (dst, src, work_tensor), repeat_times, src_rep_stride
        )

    def vec_reduce_min(
        self,
        mask: Any,
        dst: Tensor,
        src: Tensor,
        work_tensor: Tensor,
        repeat_times: Any,
        src_rep_stride: Any,
        cal_index: bool = False,
    ) -> None:
        """Find the smallest lane of all repeats."""
        self._require_no_index("vec_reduce_min", cal_index)
        self._reduce_all(
            "vec_reduce_min", "vcmin", mask, (dst, src, work_tensor), repeat_times, src_rep_stride
        )

    def _require_no_index(self, call: str, cal_index: bool) -> None:
        if cal_index:
            raise refuse(f"{call}.cal_index", "be False, as far as cubecore goes", "True")

    def _reduce_all(
        self,
        call: str,
        name: str,
        mask: Any,
        tensors: tuple[Tensor, Tensor, Tensor],
        repeat_times: Any,
        src_rep_stride: Any,
    ) -> None:
        dst, src, work = tensors
        repeats = require_immediate(repeat_times, f"{call}.repeat_times", 1, _MOST_REPEATS)
        width = 2048 // src.record.bits
        fixed = {} if name == "vcadd" else {"order": "only_value"}
        self._level(name, call, mask, (work, src), repeats, src_rep_stride, fixed)
        count = repeats
        self.trace.buffers.open()
        while count > width:
            whole, rest = divmod(count, width)
            name_of = f"{call}_{count}"
            spare = self.Tensor(src.dtype, (ceil_div(count, width),), SCOPE_UB, name_of)
            self._level(name, call, width, (spare, work), whole, 8, fixed)
            if rest:
                tail = (spare[whole:], work[whole * width :])
                self._level(name, call, rest, tail, 1, 8, fixed)
            work, count = spare, ceil_div(count, width)
        self._level(name, call, count, (dst, work), 1, 8, fixed)
        self.trace.buffers.close()

    def _level(
        self,
        name: str,
        call: str,
        mask: Any,
        tensors: tuple[Tensor, Tensor],
        repeats: int,
        stride: Any,
        fixed: dict[str, Any],
    ) -> None:
        dst, src = tensors
        kind = instruction_named(name)
        self.vectors(call, kind, mask, 2048 // src.record.bits, repeats)
        parameters = {
            "dtype": src.record,
            "repeat": repeats,
            "src_repeat_stride": integer(stride, f"{call}.src_rep_stride"),
            **fixed,
        }
        self.trace.issue(kind, parameters, (dst, src), call)

    # --- transposes

    def vec_trans_scatter(
        self,
        dst_high_half: bool,
        src_high_half: bool,
        dst_list: Sequence[Tensor],
        src_list: Sequence[Tensor],
        repeat_times: Any,
        dst_rep_stride: Any,
        src_rep_stride: Any,
    ) -> None:
        """Transpose between sixteen blocks of src and sixteen of dst."""
        call = "vec_trans_scatter"
        for name, tensors in (("dst_list", dst_list), ("src_list", src_list)):
            if len(tensors) != _BLOCKS_OF_LIST:
                raise refuse(f"{call}.{name}", f"have {_BLOCKS_OF_LIST} tensors", len(tensors))
        bits = src_list[0].record.bits
        for register, tensors in enumerate(
            (dst_list[:8], dst_list[8:], src_list[:8], src_list[8:])
        ):
            addresses = {f"address{i}": tensor.address for i, tensor in enumerate(tensors)}
            self.trace.issue(
                instruction_named("set_va_reg_sb"), {"va": register, **addresses}, (), call
            )
        parameters: dict[str, Any] = {
            "dst_va": 0,
            "src_va": 2,
            "repeat": integer(repeat_times, f"{call}.repeat_times"),
            "dst_stride": integer(dst_rep_stride, f"{call}.dst_rep_stride"),
            "src_stride": integer(src_rep_stride, f"{call}.src_rep_stride"),
        }
        if bits == 8:
            parameters |= {
                "dst_high_half": bool(dst_high_half),
                "src_high_half": bool(src_high_half),
            }
        touches = [touch_of(t, writes=True) for t in dst_list]
        touches += [touch_of(t, writes=False) for t in src_list]
        kind = instruction_named(f"scatter_vnchwconv_b{bits}")
        self.trace.issue(kind, parameters, (), call, touches=list(dict.fromkeys(touches)))

    vnchwconv = vec_trans_scatter

    def vec_trans(
        self, dst: Tensor, src: Tensor, repeat_times: Any, dst_rep_stride: Any, src_rep_stride: Any
    ) -> None:
        """Transpose 16 x 16 elements of 16 bits, repeat by repeat; strides are of 512 bytes."""
        repeats = integer(repeat_times, "vec_trans.repeat_times")
        steps = [
            integer(s, "vec_trans.stride") * (_BLOCKS_OF_LIST**2)
            for s in (dst_rep_stride, src_rep_stride)
        ]
        with self.for_range(0, _value(repeats)) as i:
            self._transpose("vec_trans", dst[i * _value(steps[0]) :], src[i * _value(steps[1]) :])

    def vtranspose(self, dst: Tensor, src: Tensor) -> None:
        """Transpose 16 x 16 elements of 16 bits."""
        self._transpose("vtranspose", dst, src)

    def _transpose(self, call: str, dst: Tensor, src: Tensor) -> None:
        self.trace.issue(instruction_named("vtranspose"), {"dtype": _MATRIX}, (dst, src), call)


def _value(expression: Any) -> Any:
    from cubecore.frontends.tik.values import Value

    return Value(expression) if expression.constant is None else expression.constant


def _low(name: str) -> Callable[..., None]:
    def method(
        self: Shapes,
        mask: Any,
        dst: Tensor,
        src: Tensor,
        repeat_times: Any,
        dst_rep_stride: Any,
        src_blk_stride: Any,
        src_rep_stride: Any,
        *order: Any,
    ) -> None:
        if any(order):
            raise refuse(name, "have its default order", order[0])
        numbers = {
            "repeat": repeat_times,
            "dst_repeat_stride": dst_rep_stride,
            "src_block_stride": src_blk_stride,
            "src_repeat_stride": src_rep_stride,
        }
        self.reduce(name, name, mask, (dst, src), numbers)

    method.__name__ = name
    return method


for _name in _EACH:
    setattr(Shapes, _name, _low(_name))
