"""TIK's region proposals: components in and out, sorting, merging."""

from collections.abc import Sequence
from typing import Any

from cubecore.dtypes import FLOAT32
from cubecore.frontends.tik.calls.vector import VectorCalls
from cubecore.frontends.tik.trace.errors import refuse
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.frontends.tik.trace.values import Scalar, TikValue, Value, converted, integer
from cubecore.isa.catalogue import instruction_named

_QUEUES = {2: 3, 3: 7, 4: 15}
"""valid_bit of two, three and four queues."""
_ELEMENTS = 8


class SuppressionRegister:
    """Stands for the suppression register of a core: there is one."""


class MergedCounts:
    """Stands for how many proposals each queue of the last merge gave."""


class RegionProposalCalls(VectorCalls):
    """vconcat, vextract, vrpsort16, vmrgsort4; areas, overlaps and suppression."""

    def vconcat(self, dst: Tensor, src: Tensor, repeat_times: TikValue, mode: TikValue) -> None:
        """Put 16 elements a repeat into a component of proposals."""
        self._component("vconcat", dst, src, repeat_times, mode)

    def vextract(self, dst: Tensor, src: Tensor, repeat_times: TikValue, mode: TikValue) -> None:
        """Take 16 elements a repeat out of a component of proposals."""
        self._component("vextract", dst, src, repeat_times, mode)

    def _component(
        self, call: str, dst: Tensor, src: Tensor, repeat: TikValue, mode: TikValue
    ) -> None:
        parameters = {
            "dtype": dst.record,
            "repeat": integer(repeat, f"{call}.repeat_times"),
            "mode": integer(mode, f"{call}.mode"),
        }
        self.trace.issue(instruction_named(call), parameters, (dst, src), call)

    def vrpsort16(self, dst: Tensor, src: Tensor, repeat_times: TikValue) -> None:
        """Sort each group of 16 proposals from the largest score down."""
        repeats = integer(repeat_times, "vrpsort16.repeat_times")
        parameters = {"dtype": dst.record, "repeat": repeats}
        self.trace.issue(instruction_named("vrpsort16"), parameters, (dst, src), "vrpsort16")

    def vmrgsort4(
        self,
        dst: Tensor,
        src_list: Sequence[Tensor],
        element_lengths: TikValue,
        if_exhausted_suspension: bool = False,
        valid_bit: TikValue = 15,
        repeat_times: TikValue = 1,
        *counts: Any,
    ) -> MergedCounts:
        """Merge two to four queues of proposals; more repeats go on behind one another.

        An array behind the others takes how many proposals each queue gave; what is returned stands
        for those numbers too.
        """
        call = "vmrgsort4"
        if isinstance(valid_bit, Value):
            rest = (element_lengths, if_exhausted_suspension)
            for many, code in _QUEUES.items():
                if many <= len(src_list):
                    with self.if_scope(valid_bit == code):
                        self.vmrgsort4(dst, src_list[:many], *rest, code, repeat_times, *counts)
            return MergedCounts()
        bits = int(valid_bit, 2) if isinstance(valid_bit, str) else valid_bit
        queues = next((count for count, code in _QUEUES.items() if code == bits), None)
        if queues is None or queues > len(src_list):
            got = f"{valid_bit!r} with {len(src_list)} queues"
            raise refuse(f"{call}.valid_bit", "be 3, 7 or 15, one bit for each queue", got)
        each = element_lengths
        lengths = each if isinstance(each, (list, tuple)) else [each] * queues
        parameters: dict[str, object] = {
            "dtype": dst.record,
            "if_exhausted_suspension": bool(if_exhausted_suspension),
            "valid_bit": bits,
        }
        lanes = [integer(length, f"{call}.element_lengths") for length in lengths[:queues]]
        parameters |= {f"element_length_{i}": length for i, length in enumerate(lanes)}
        kind = instruction_named("vmrgsort4_proposals")
        tensors = (dst, *src_list[:queues])
        if isinstance(repeat_times, int) and repeat_times == 1:
            self.trace.issue(kind, parameters, tensors, call)
            if counts:
                self.registered("store_merged", [counts[0][i] for i in range(queues)])
            return MergedCounts()
        size = _ELEMENTS * dst.record.size_bytes
        step = sum(lanes[1:], lanes[0]) * size
        with self.for_range(0, repeat_times) as turn:
            addresses = [tensor.address + turn.expr * step for tensor in tensors]
            self.trace.issue(kind, parameters, tensors, call, addresses)
        return MergedCounts()

    def mov_vmrgsort4_sr_to_scalar(self, scalar_list: Sequence[Scalar], counts: TikValue) -> None:
        """Give Scalars how many proposals each queue of the last merge gave."""
        call = "mov_vmrgsort4_sr_to_scalar"
        if not isinstance(counts, MergedCounts):
            raise refuse(f"{call}.vms4_sr", "be the result of vmrgsort4", type(counts).__name__)
        self.registered("store_merged", scalar_list)

    # --- areas and suppression

    def vrpac(self, dst: Tensor, src: Tensor, repeat_times: TikValue) -> None:
        """Write the area of each proposal, 16 in a repeat."""
        self._areas("vrpac", repeat_times, (dst, src))

    def vaadd(self, dst: Tensor, src0: Tensor, src1: Tensor, repeat_times: TikValue) -> None:
        """Add each area of src0 to each of src1's 16."""
        self._areas("vaadd", repeat_times, (dst, src0, src1))

    def viou(self, dst: Tensor, src0: Tensor, src1: Tensor, repeat_times: TikValue) -> None:
        """Write what each proposal of src0 has in common with each of src1's 16."""
        self._areas("viou", repeat_times, (dst, src0, src1))

    def _areas(self, call: str, repeat_times: TikValue, tensors: tuple[Tensor, ...]) -> None:
        parameters = {
            "dtype": tensors[0].record,
            "repeat": integer(repeat_times, f"{call}.repeat_times"),
        }
        self.trace.issue(instruction_named(call), parameters, tensors, call)

    def set_rpn_offset(self, value: TikValue) -> None:
        """Set what vrpac and viou add to both edges of a box."""
        bits = {"value": converted(value, FLOAT32)}
        self.trace.issue(instruction_named("set_rpn_offset"), bits, (), "set_rpn_offset")

    def set_rpn_cor_ir(self, value: TikValue) -> SuppressionRegister:
        """Set the suppression register; what is returned stands for it."""
        bits = {"value": integer(value, "set_rpn_cor_ir.value")}
        self.trace.issue(instruction_named("set_rpn_cor_ir"), bits, (), "set_rpn_cor_ir")
        return SuppressionRegister()

    def rpn_cor(
        self,
        matrix: Tensor,
        vector: Tensor,
        dst_rep_stride: TikValue = 1,
        src_rep_stride: TikValue = 1,
        repeat_times: TikValue = 1,
    ) -> SuppressionRegister:
        """Add what kept proposals suppress to the suppression register."""
        call = "rpn_cor"
        parameters = {
            "repeat": integer(repeat_times, f"{call}.repeat_times"),
            "matrix_stride": integer(dst_rep_stride, f"{call}.dst_rep_stride"),
            "vector_stride": integer(src_rep_stride, f"{call}.src_rep_stride"),
        }
        self.trace.issue(instruction_named(call), parameters, (matrix, vector), call)
        return SuppressionRegister()

    def rpn_cor_diag(self, dst: Tensor, matrix: Tensor, register: TikValue) -> None:
        """Judge a group of 16 proposals, with what the register holds."""
        call = "rpn_cor_diag"
        if not isinstance(register, SuppressionRegister):
            need = "be the result of set_rpn_cor_ir or rpn_cor"
            raise refuse(f"{call}.src1", need, type(register).__name__)
        self.trace.issue(instruction_named(call), {}, (matrix, dst), call)
