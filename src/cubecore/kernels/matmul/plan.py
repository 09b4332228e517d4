"""The plan of a matmul kernel: everything that a core's tree depends on."""

from dataclasses import dataclass

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.kernels.matmul.operand import OperandPlan, operand_plan
from cubecore.kernels.matmul.result import ResultPlan
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling


@dataclass(frozen=True, slots=True)
class MatmulPlan:
    """Everything that a core's tree depends on; the last three are as `matmul_launch` has them."""

    problem: Problem
    tiling: TCubeTiling
    chip: Chip
    step: str
    a: OperandPlan
    b: OperandPlan
    c: ResultPlan
    preload: bool = True
    by_vector_cores: bool = False
    drains_l0: bool = False

    @property
    def accumulator(self) -> ElementType:
        """The type of L0C."""
        return self.problem.accumulator_type


def matmul_plan(
    problem: Problem,
    tiling: TCubeTiling,
    chip: Chip,
    step: str | None = None,
    *,
    padded: bool = False,
    preload: bool = True,
    by_vector_cores: bool = False,
    drains_l0: bool = False,
) -> MatmulPlan:
    """Return the plan of the kernel that `tiling` implies for `problem` on `chip`."""
    return MatmulPlan(
        problem=problem,
        tiling=tiling,
        chip=chip,
        step=step or ("MDL" if problem.template == "MDL" else "NORM"),
        a=operand_plan(problem, tiling, is_a=True, padded=padded),
        b=operand_plan(problem, tiling, is_a=False, padded=padded),
        c=ResultPlan(problem, tiling),
        preload=preload,
        by_vector_cores=by_vector_cores,
        drains_l0=drains_l0,
    )
