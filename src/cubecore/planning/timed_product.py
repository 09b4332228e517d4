"""One matmul on one chip in one tiling, timed: what `time` and its what-ifs have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from cubecore.chips.costs import peak_ops_per_cycle
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.rules.checker import check_tiling

if TYPE_CHECKING:
    from cubecore.chips import Chip
    from cubecore.isa.program.launch import Launch
    from cubecore.tiling.model.problem import Problem
    from cubecore.tiling.model.tcubetiling import TCubeTiling
    from cubecore.timing.records import Timeline


@dataclass(frozen=True)
class TimedProduct:
    """A kernel that computes `problem` on `chip` as `tiling` has it.

    `step` says what kind of kernel pays the scalar unit's cost of a base-K step; None for the
    template's. `padded` that A and B lie in rows an odd number of 512 B apart.
    """

    problem: Problem
    tiling: TCubeTiling
    chip: Chip
    step: str | None = None
    padded: bool = False

    @cached_property
    def line(self) -> Timeline:
        """Its timeline; made once."""
        return self.timed()

    def timed(self, *, record: int = 0, full: bool = False) -> Timeline:
        """Return its timeline; `record` and `full` as `time_launch` has them.

        The latest ones without either are kept: a timing costs once what it costs.

        Raises
        ------
        RequestError
            If the kernel does not support the request, or no source gives a cost.
        """
        return _walked(self, record, full) if record or full else _timeline(self)

    def with_tiling(self, **fields: int) -> TimedProduct:
        """Return the same with fields of the tiling replaced."""
        return replace(self, tiling=replace(self.tiling, **fields))

    @property
    def legal(self) -> bool:
        """True if the tiling satisfies every rule."""
        return not check_tiling(self.tiling, self.problem, self.chip).findings


@lru_cache(maxsize=8)
def _launch(product: TimedProduct) -> Launch:
    """Return the kernel's launch; what is known of its trees is kept with the latest ones."""
    p, chip = product.problem, product.chip
    return matmul_launch(p, product.tiling, chip, product.step, padded=product.padded)


@lru_cache(maxsize=64)
def _timeline(product: TimedProduct) -> Timeline:
    return _walked(product)


def _walked(product: TimedProduct, record: int = 0, full: bool = False) -> Timeline:
    from cubecore.timing.launch import time_launch

    p, chip = product.problem, product.chip
    return time_launch(
        _launch(product),
        chip,
        operations=2 * p.batch * p.m * p.n * p.k,
        peak=peak_ops_per_cycle(chip, p.a_type),
        record=record,
        full=full,
    )
