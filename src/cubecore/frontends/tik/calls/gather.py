"""TIK's calls that pick elements: by a pattern, by offsets, by score."""

from collections.abc import Sequence
from typing import Any

from cubecore.dtypes import element_type
from cubecore.frontends.tik.calls.vector import VectorCalls
from cubecore.frontends.tik.trace.errors import refuse, require_immediate
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.frontends.tik.trace.values import Scalar, TikValue, integer
from cubecore.isa.catalogue import instruction_named

_QUEUES = {2: 3, 3: 7, 4: 15}
"""valid_bit of two, three and four queues."""
_PATTERNS = 7
_BITS = {16: element_type("uint16"), 32: element_type("uint32")}


class GatherCalls(VectorCalls):
    """vreduce, vreducev2, vgather, vsort32, vmrgsort."""

    def vreduce(
        self,
        mask: TikValue,
        dst: Tensor,
        src0: Tensor,
        src1_pattern: TikValue,
        repeat_times: TikValue,
        src0_blk_stride: TikValue,
        src0_rep_stride: TikValue,
        src1_rep_stride: TikValue,
        stride_unit: TikValue = 0,
        rsvd_scalar: Scalar | None = None,
        mask_mode: str = "normal",
    ) -> None:
        """Keep the elements that a pattern names, one behind another."""
        call = "vreduce"
        counted = _is_counted(call, stride_unit, mask_mode)
        parameters: dict[str, object] = {
            "dtype": _BITS[src0.record.bits],
            "repeat": integer(repeat_times, f"{call}.repeat_times"),
            "src0_block_stride": integer(src0_blk_stride, f"{call}.src0_blk_stride"),
            "src0_repeat_stride": integer(src0_rep_stride, f"{call}.src0_rep_stride"),
            "src1_repeat_stride": integer(src1_rep_stride, f"{call}.src1_rep_stride"),
            "pattern": 0,
        }
        operands = [dst, src0]
        if isinstance(src1_pattern, Tensor):
            operands.append(src1_pattern)
        else:
            number = require_immediate(src1_pattern, f"{call}.src1_pattern", 1, _PATTERNS)
            parameters["pattern"] = number
        if counted:
            parameters["repeat"] = 1
            self.trace.count(integer(mask, f"{call}.mask"))
        self.trace.issue(instruction_named("vreducev2"), parameters, operands, call)
        if counted:
            self.trace.count(None)
        if rsvd_scalar is not None:
            self.registered("store_kept", [rsvd_scalar])

    def vreducev2(
        self,
        mask: TikValue,
        dst: Tensor,
        src0: Tensor,
        src1_pattern: TikValue,
        repeat_times: TikValue,
        src0_blk_stride: TikValue,
        src0_rep_stride: TikValue,
        src1_rep_stride: TikValue,
        rsvd_scalar: Scalar | None = None,
        mask_mode: str = "normal",
    ) -> None:
        """As `vreduce`, which has a stride_unit before the last two."""
        strides = src0_blk_stride, src0_rep_stride, src1_rep_stride
        self.vreduce(
            *(mask, dst, src0, src1_pattern, repeat_times, *strides),
            rsvd_scalar=rsvd_scalar,
            mask_mode=mask_mode,
        )

    def vgather(
        self,
        mask: TikValue,
        dst: Tensor,
        src: Tensor,
        offset: Tensor,
        repeat_times: TikValue,
        dst_rep_stride: TikValue,
        base_addr: TikValue = 0,
        stride_unit: TikValue = 0,
        mask_mode: str = "normal",
    ) -> None:
        """Take the elements of src at byte offsets."""
        counted = _is_counted("vgather", stride_unit, mask_mode)
        kind = instruction_named("vgather")
        parameters: dict[str, object] = {
            "dtype": dst.record,
            "dst_repeat_stride": integer(dst_rep_stride, "vgather.dst_rep_stride"),
        }
        if counted:
            parameters["repeat"] = 1
            self.trace.count(integer(mask, "vgather.mask"))
        else:
            width = 2048 // dst.record.bits
            parameters["repeat"] = self.vectors("vgather", kind, mask, width, repeat_times)
        base = integer(base_addr, "vgather.base_addr")
        addresses = (dst.address, src.address + base, offset.address)
        self.trace.issue(kind, parameters, (dst, src, offset), "vgather", addresses)
        if counted:
            self.trace.count(None)

    def vsort32(self, dst: Tensor, scores: Tensor, indices: Tensor, repeat_times: TikValue) -> None:
        """Sort 32 scores from the largest down, each with its index, repeat by repeat."""
        repeats = integer(repeat_times, "vsort32.repeat_times")
        parameters = {"dtype": scores.record, "repeat": repeats}
        self.trace.issue(
            instruction_named("vbitsort"), parameters, (dst, scores, indices), "vsort32"
        )

    def vmrgsort(
        self,
        dst: Tensor,
        src_list: Sequence[Tensor],
        element_lengths: TikValue,
        if_exhausted_suspension: bool = False,
        repeat_times: TikValue = 1,
        *counts: Any,
    ) -> None:
        """Merge two to four queues of records, each sorted from the largest score down.

        An array behind the others takes how many records each queue gave.
        """
        call, queues = "vmrgsort", len(src_list)
        if queues not in _QUEUES:
            raise refuse(f"{call}.src_list", "have two to four queues", queues)
        each = element_lengths
        lengths = each if isinstance(each, (list, tuple)) else [each] * queues
        parameters: dict[str, object] = {
            "dtype": dst.record,
            "repeat": integer(repeat_times, f"{call}.repeat_times"),
            "if_exhausted_suspension": bool(if_exhausted_suspension),
            "valid_bit": _QUEUES[queues],
        }
        for queue, length in enumerate(lengths):
            parameters[f"element_length_{queue}"] = integer(length, f"{call}.element_lengths")
        kind = instruction_named("vmrgsort4")
        self.trace.issue(kind, parameters, (dst, *src_list), call)
        if counts:
            self.registered("store_merged", [counts[0][i] for i in range(queues)])


def _is_counted(call: str, stride_unit: TikValue, mask_mode: str) -> bool:
    """True if a call's mask counts elements; refuse what these calls have no other form for."""
    if stride_unit or mask_mode not in {"normal", "counter"}:
        got = f"{stride_unit} and {mask_mode!r}"
        raise refuse(call, "have stride_unit 0 and mask_mode normal or counter", got)
    return mask_mode == "counter"
