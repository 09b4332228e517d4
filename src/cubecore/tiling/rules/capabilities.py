"""Capabilities: matmuls that a chip computes, and those that the planner can plan.

`validate` is about the chip: Mmad, tables 4 and 5 for architecture 2201, and fixpipe's outputs.
`require_plannable` is about options together: one sentence for each that the hardware does not do.
"""

from collections.abc import Iterator

from cubecore.chips import Chip
from cubecore.chips.products import (
    FIXPIPE_ARCHS,
    FIXPIPE_ROWS,
    IBSHARE_ARCHS,
    MATMUL_UNIT_FLAG_ARCHS,
    FixpipeRow,
    combination,
    combinations,
    plain_outputs,
)
from cubecore.citations import cite
from cubecore.errors import RequestError, Violation
from cubecore.layouts import nz_multiple
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.batches import batch_violations
from cubecore.units import FRACTAL_ROWS


def validate(problem: Problem, chip: Chip) -> None:
    """Refuse what `chip` cannot multiply.

    Raises
    ------
    RequestError
        One violation for each unsupported part: the pair of inputs, the output, the bias, the
        launch. Each cites its table.
    """
    violations = [*_type_violations(problem, chip), *_feature_violations(problem, chip)]
    violations += batch_violations(problem, chip)
    try:
        problem.core_limit(chip)
    except RequestError as error:
        violations += error.violations
    if violations:
        raise RequestError(violations)


def _type_violations(problem: Problem, chip: Chip) -> Iterator[Violation]:
    row = combination(chip.arch, problem.a, problem.b)
    if row is None:
        table = combinations(chip.arch)
        pairs = ", ".join(f"{c.a} by {c.b}" for c in table)
        yield Violation(
            "a and b",
            f"be types that arch {chip.arch} multiplies ({pairs}: {table[0].source})",
            f"{problem.a} by {problem.b}",
        )
        return
    yield from _epilogue_violations(problem, chip)
    if problem.bias is not None and problem.bias not in row.bias_inputs:
        kinds = " or ".join(row.bias_inputs)
        need = f"be {kinds}" if kinds else "be absent"
        yield Violation("bias", f"{need} for {row.a} by {row.b} ({row.bias_source})", problem.bias)


def _feature_violations(problem: Problem, chip: Chip) -> Iterator[Violation]:
    """Yield the options that the chip has not."""
    if problem.unit_flag and chip.arch not in MATMUL_UNIT_FLAG_ARCHS:
        need = f"be false on {chip.name} ({cite('002', 'table 3')}: Atlas A2 and A3 have it)"
        yield Violation("unit_flag", need, "true")
    if problem.template == "IBSHARE" and chip.arch not in IBSHARE_ARCHS:
        need = f"be NORM or MDL on {chip.name} (vendor's GetIBShareNormConfig, table of products)"
        yield Violation("template", need, "IBSHARE")
    elif problem.template == "IBSHARE" and problem.mx:
        need = "be NORM or MDL in MxMatmul (vendor's guide, MxMatmul: constraints)"
        yield Violation("template", need, "IBSHARE")
    if problem.hf32 and chip.hf32_speedup is None:
        need = f"be false on {chip.name} ({cite('002', 'table 4')}: no float32)"
        yield Violation("hf32", need, "true")


def _epilogue_violations(problem: Problem, chip: Chip) -> Iterator[Violation]:
    """Yield what fixpipe cannot do to the accumulator, with and without a scale."""
    accumulator, epilogue = problem.accumulator_type.name, problem.epilogue
    rows = [r for r in FIXPIPE_ROWS if r.source == accumulator and "GM" in r.to]
    arch = chip.arch if chip.arch in FIXPIPE_ARCHS else FIXPIPE_ARCHS[0]
    rows = [r for r in rows if arch in r.archs]
    product = combination(chip.arch, problem.a, problem.b)
    table = cite("002", "table 4") if product is None else product.source
    scaled = [r for r in rows if r.scaling != "none"]
    if epilogue.quant is None:
        if problem.c not in plain_outputs(accumulator):
            modes = ", ".join(f"{r.mode} to {r.target}" for r in scaled)
            yield Violation(
                "c",
                f"be {' or '.join(plain_outputs(accumulator))} without epilogue.quant "
                f"({table}: mad gives {accumulator})",
                problem.c,
                f"epilogue.quant writes others: {modes}" if modes else "",
            )
        if epilogue.scale is not None:
            need = "be absent without epilogue.quant"
            yield Violation("epilogue.scale", need, str(epilogue.scale))
        return
    row = problem.fixpipe
    if row is None or row not in scaled:
        modes = " or ".join(r.mode for r in scaled)
        need = f"be {modes or 'absent'} for an accumulator of {accumulator} ({table})"
        yield Violation("epilogue.quant", need, epilogue.quant)
        return
    if problem.c != row.target:
        need = (
            f"be {row.target}, which {row.mode} makes of {accumulator} ({cite('002', 'table 4')})"
        )
        yield Violation("c", need, problem.c)
    yield from _scale_violations(problem, row)


def _scale_violations(problem: Problem, row: FixpipeRow) -> Iterator[Violation]:
    scale = problem.epilogue.scale
    if row.scaling == "one" and not isinstance(scale, (int, float)):
        got = "nothing" if scale is None else f"{len(scale)} numbers"
        yield Violation("epilogue.scale", f"be one number for {row.mode}", got)
    if row.scaling == "column" and scale is not None:
        count = len(scale) if isinstance(scale, tuple) else 1
        if not isinstance(scale, tuple) or count != problem.n:
            need = f"be n = {problem.n} numbers for {row.mode}"
            got = f"{count} numbers" if isinstance(scale, tuple) else "one number"
            yield Violation("epilogue.scale", need, got)
    if problem.epilogue.offset and row.target != "int8":
        need = f"be 0 for {row.mode}, which has no offset"
        yield Violation("epilogue.offset", need, str(problem.epilogue.offset))


def _nz_violations(problem: Problem) -> Iterator[Violation]:
    """Yield sizes of an operand in NZ that are not whole fractals, as stored.

    The rules A-NZ-M, A-NZ-K, B-NZ-K and B-NZ-N say the same of a tiling that is checked.
    """
    p = problem
    for letter, kind, row_axis, k_inner in (
        ("a", p.a_type, "m", not p.trans_a),
        ("b", p.b_type, "n", p.trans_b),
    ):
        if getattr(p, f"format_{letter}") != "NZ":
            continue
        for axis, inner in ((row_axis, not k_inner), ("k", k_inner)):
            multiple = nz_multiple(kind.c0, along_k=axis == "k", inner=inner)
            if getattr(p, axis) % multiple:
                page = cite("000", "table 1")
                need = f"be a multiple of {multiple} for {letter.upper()} in NZ ({page})"
                yield Violation(axis, need, str(getattr(p, axis)), f"C0 of {kind} is {kind.c0}")


def require_plannable(problem: Problem) -> None:
    """Refuse options that no tiling can bring together.

    Raises
    ------
    RequestError
        One violation for each of them.
    """
    if violations := list(option_violations(problem)):
        raise RequestError(violations)


def option_violations(problem: Problem) -> Iterator[Violation]:
    """Yield what options ask of the hardware that it does not do, for planning and execution."""
    yield from _nz_violations(problem)
    if problem.hf32 and problem.a != "float32":
        yield Violation("hf32", "be false without float32 inputs", "true")
    if problem.trans_a and problem.a == "int4":
        yield Violation(
            "trans_a",
            "be false for int4 (asc-devkit, LoadDataWithTranspose: into L0B alone)",
            "true",
        )
    wide = problem.c_fractal_columns
    if problem.format_c == "NZ" and wide > FRACTAL_ROWS and problem.n % wide:
        need = f"be a multiple of {wide} for an NZ C of {problem.c}"
        yield Violation("n", need, str(problem.n))
    if problem.split_k:
        reason = "split_k adds up in C"
        accumulator = problem.accumulator_type.name
        if problem.c != accumulator:
            yield Violation("c", f"be {accumulator} with split_k", problem.c, reason)
        if problem.epilogue.relu:
            yield Violation("epilogue.relu", "be false with split_k", "true", reason)
        if problem.epilogue.quant is not None:
            yield Violation(
                "epilogue.quant", "be null with split_k", problem.epilogue.quant, reason
            )
        if problem.format_c == "NZ" and problem.n % FRACTAL_ROWS:
            need = f"be a multiple of {FRACTAL_ROWS} for an NZ C with split_k"
            yield Violation("n", need, str(problem.n), reason)
