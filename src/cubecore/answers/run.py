"""The answer of `run`: C, how far it is from the matmul, and the findings."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cubecore.frontends.finding_text import failed_line
from cubecore.machine.sanitize.findings import SanitizerFinding, faults
from cubecore.manual import address_lines
from cubecore.numerics import ACCUMULATION_POLICY
from cubecore.presented import Presented
from cubecore.tiling.model.request import TilingRequest, problem_line
from cubecore.units import plural

if TYPE_CHECKING:
    from cubecore.aliases import Json
    from cubecore.arrays import Array
    from cubecore.presented import Figures
    from cubecore.tiling.model.tcubetiling import TCubeTiling


@dataclass(frozen=True, slots=True)
class Verification:
    """The comparison of a result with the product.

    Errors are of elements compared in float64: all of them, or, for a large matmul of floats,
    those that a float32 product leaves in doubt and the farthest of each block of rows; `compared`
    counts them.
    `tolerance` is the largest limit of those elements; each has its own. `worst` is the largest
    error over its limit. `nan` and `infinite` count elements of the product, `nonfinite_differ`
    those where the matmul or the result is not finite and the other is not the same. `policy` says
    how limits are derived.
    """

    verified: bool
    max_abs_error: float
    max_rel_error: float
    tolerance: float
    worst: float
    nan: int
    infinite: int
    nonfinite_differ: int
    policy: str
    compared: int


@dataclass(frozen=True, slots=True)
class Run(Presented):
    """The result of an execution.

    Attributes
    ----------
    wall_s : float
        Seconds from the first issue to the last byte of C, checks included; generation and
        verification are not.
    peak_bytes : int or None
        The process's largest resident size; None where the system does not report it.
    """

    request: TilingRequest
    tiling: TCubeTiling
    verification: Verification
    findings: tuple[SanitizerFinding, ...]
    issued: int
    engine: str
    order: str
    operands_wall_s: float
    wall_s: float
    verify_wall_s: float
    total_wall_s: float
    reference_wall_s: float | None
    peak_bytes: int | None
    c: Array = field(repr=False)

    @property
    def verified(self) -> bool:
        """True if the result is the matmul and there is no finding but notes."""
        return self.verification.verified and not faults(self.findings)

    @property
    def policy(self) -> str:
        """Return the order in which products were summed."""
        kind = self.request.problem.accumulator_type
        if kind.kind == "int":
            return "exact integers, saturated to int32"
        return ACCUMULATION_POLICY[self.engine].replace("to float32", f"to {kind}")

    def to_json(self) -> Json:
        """Return the public contract's object."""
        v = self.verification
        return {
            "problem": self.request.problem.to_json(),
            "tiling": self.tiling.to_json(),
            "verified": self.verified,
            "max_abs_error": _finite(v.max_abs_error),
            "max_rel_error": _finite(v.max_rel_error),
            "tolerance": _finite(v.tolerance),
            "worst_error_over_tolerance": _finite(v.worst),
            "tolerance_policy": v.policy,
            "float64_elements": v.compared,
            "nonfinite": {"nan": v.nan, "infinite": v.infinite, "differ": v.nonfinite_differ},
            "policy": self.policy,
            "findings": [finding.to_json() for finding in self.findings],
            "issued": self.issued,
            "engine": self.engine,
            "order": self.order,
            "operands_wall_s": self.operands_wall_s,
            "wall_s": self.wall_s,
            "verify_wall_s": self.verify_wall_s,
            "total_wall_s": self.total_wall_s,
            "reference_wall_s": self.reference_wall_s,
            "peak_bytes": self.peak_bytes,
        }

    @property
    def text(self) -> str:
        """The verdict with errors and tolerance, times and findings."""
        v, p = self.verification, self.request.problem
        error = (
            f"largest error {v.max_abs_error:.3g}, tolerance {v.tolerance:.3g} "
            f"(worst element at {v.worst:.2f} of its own limit)"
        )
        engine = self.engine if self.order == "program" else f"{self.order} order, {self.engine}"
        cores = plural(self.tiling.usedCoreNum, "core" if p.launch == "cube" else "AIV client")
        lines = [
            problem_line(self.request),
            f"verified: {error}" if self.verified else failed_line(self.findings, [error]),
            f"  policy  {self.policy}",
            f"  issued  {self.issued:,} instructions on {cores} ({engine} engine)",
            f"  time    operands {self.operands_wall_s:.2f} s, execution {self.wall_s:.2f} s, "
            f"verification {self.verify_wall_s:.2f} s; in all {self.total_wall_s:.2f} s",
        ]
        if v.compared < (elements := p.batch * p.m * p.n):
            lines.append(
                f"  errors  of {v.compared:,} elements in float64, with those farthest from a "
                f"float32 matmul; it settles the other {elements - v.compared:,}"
            )
        if (reference := self.reference_wall_s) is not None:
            lines.append(f"  NumPy   {reference:.3g} s for the float32 matmul of the shape")
        if v.nan or v.infinite or v.nonfinite_differ:
            lines.append(
                f"  matmul  {plural(v.nan, 'element')} NaN and {v.infinite} infinite; "
                f"{v.nonfinite_differ} differ"
            )
        lines += ["", f"Findings: {len(self.findings)}"] if self.findings else ["  findings none"]
        lines += [
            f"  {f.id}: {f.message} ({f.count} times; {f.core}, {f.location})"
            for f in self.findings
        ]
        lines += address_lines("finding", (f.id for f in self.findings))
        return "\n".join(lines) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each finding."""
        return [finding.to_json() for finding in self.findings]

    def _figures(self) -> Figures:
        error = f"{self.verification.max_abs_error:.3g}"
        figures = [("verified", "yes" if self.verified else "no"), ("largest error", error)]
        figures += [("engine", self.engine), ("issued", f"{self.issued:,}")]
        return problem_line(self.request), [*figures, ("findings", str(len(self.findings)))]

    def _remarks(self) -> list[str]:
        return [finding.message for finding in self.findings]


def _finite(value: float) -> float | None:
    """Return a number that JSON has: None for infinity."""
    return value if math.isfinite(value) else None
