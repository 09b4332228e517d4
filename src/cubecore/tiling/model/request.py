"""A problem on a chip, and the line that names both."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from cubecore.chips import Chip
from cubecore.tiling.model.problem import Problem


@dataclass(frozen=True, slots=True)
class TilingRequest:
    """A problem and the chip that it is for: fields replaced as asked, buffers cut to the budget.

    `settings` are the replaced fields, as texts.
    """

    problem: Problem
    chip: Chip
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def problem_line(request: TilingRequest) -> str:
    """Return the problem in one line."""
    p = request.problem
    a = f"A[{p.k}x{p.m}]^T" if p.trans_a else f"A[{p.m}x{p.k}]"
    kb = p.kb or p.k
    b = f"B[{p.n}x{kb}]^T" if p.trans_b else f"B[{kb}x{p.n}]"
    kinds = []
    for x, kind in (("a", p.a), ("b", p.b), ("c", p.c)):
        stored = " NZ" if getattr(p, f"format_{x}") == "NZ" else ""
        position = getattr(p, f"pos_{x}")
        kinds.append(kind + stored + ("" if position == "GM" else f" in {position}"))
    bias = f" + bias {p.bias}" if p.bias else ""
    options = {
        "relu": p.epilogue.relu,
        str(p.epilogue.quant): p.epilogue.quant is not None,
        "HF32": p.hf32,
        "MX scales": p.mx,
        f"{p.batch} matrices": p.batch > 1,
        f"layout {p.layout}": p.layout is not None,
        "K may be split": p.split_k,
        p.template: p.template != "MDL",
        "mix": p.launch == "mix",
    }
    named = "".join(f", {name}" for name, given in options.items() if given)
    product = f"C[{p.m}x{p.n}] {kinds[2]} = {a} {kinds[0]} x {b} {kinds[1]}{bias}"
    return f"{product}{named} on {request.chip.name}"
