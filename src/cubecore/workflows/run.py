"""run: execute the kernel that a tiling implies, instruction by instruction, and verify it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from cubecore.answers.run import Run
from cubecore.errors import refuse, unable
from cubecore.isa.program.tree import Location
from cubecore.kernels.matmul.launch import matmul_launch, require_supported
from cubecore.kernels.runnable import require_runnable
from cubecore.machine.engines import run_launch
from cubecore.machine.finding_kinds import INITCHECK
from cubecore.machine.memory.buffers import GlobalMemory, GlobalTensor
from cubecore.machine.options import checks_of, require_engine, require_order
from cubecore.machine.sanitize.findings import EVERY_CORE, SanitizerFinding
from cubecore.numerics.quantisation import scale_words
from cubecore.output_files import require_apart, require_writable, write_whole
from cubecore.units import SCALE_WORD_BYTES
from cubecore.workflows.data.files import array_file
from cubecore.workflows.data.operands import (
    OperandFiles,
    Operands,
    file_option,
    make_operands,
    require_operands,
    result_shape,
    stored_shapes,
)
from cubecore.workflows.data.process import peak_bytes
from cubecore.workflows.data.reference import reference_seconds
from cubecore.workflows.data.stored_layout import from_memory, from_nz, memory_bytes
from cubecore.workflows.data.verify import verify
from cubecore.workflows.keywords import ProblemKeys, takes_problem
from cubecore.workflows.plan import legal_or_planned
from cubecore.workflows.request import make_request, of_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from cubecore.aliases import JsonMapping
    from cubecore.answers.plan import TilingPlan
    from cubecore.arrays import Array
    from cubecore.isa.program.launch import Launch
    from cubecore.tiling.model.problem import Problem
    from cubecore.tiling.model.request import TilingRequest
    from cubecore.tiling.model.tcubetiling import TCubeTiling


def _unseen(_stage: str) -> None:
    """Show no stage."""


@takes_problem
def run(
    problem: Problem | JsonMapping | TilingPlan | None = None,
    *,
    tiling: TCubeTiling | JsonMapping | None = None,
    operands: Operands | OperandFiles | Sequence[Any] | Mapping[str, Any] | None = None,
    out: str | None = None,
    engine: str = "fast",
    order: str = "program",
    checks: str = "usual",
    reference: bool = False,
    on_stage: Callable[[str], None] = _unseen,
    settings: Mapping[str, str] | None = None,
    **keys: Unpack[ProblemKeys],
) -> Run:
    """Execute the kernel of a product instruction by instruction and verify its result.

    Parameters
    ----------
    problem : Problem or mapping or TilingPlan or None
        The product, or a plan with its tiling; keys given as keywords replace those of `problem`.
    tiling : TCubeTiling or mapping or None
        The plan's unless given.
    operands : Operands or OperandFiles or sequence or mapping or None
        Arrays as stored, as ``(A, B)`` or by name, or files; random from the seed unless given.
    out : str or None
        A .npy file for C.
    engine : str
        fast (the fastest one), blas, lockstep or reference, which takes what blas does not prove.
    order : str
        program; by reference also late or early (consumers or producers first) and random:SEED.
    checks : str
        memcheck,initcheck,racecheck,synccheck,usecheck or some; usual (no usecheck), all or none.
    reference : bool
        Time NumPy's float32 product of the shape as well.
    on_stage : callable
        Called with the name of each stage when it begins.
    settings : mapping or None
        Fields of the chip to replace, as texts: a what-if chip.
    **keys
        Fields of `Problem`; arrays as `a`, `b` and `bias` are operands, and their types the keys.

    Returns
    -------
    Run
        C, how far it is from the product, and the sanitizer's findings.

    Raises
    ------
    RequestError
        If the problem, an operand or an option is malformed or not supported.
    IllegalTilingError
        If the tiling breaks a rule.

    Examples
    --------
    >>> cubecore.run(m=64, n=64, k=64).verified
    True
    """
    options = _Options(out, engine, order, checks, reference, on_stage)
    return _run(problem, tiling, operands, settings, keys, options)


@dataclass(frozen=True, slots=True)
class _Options:
    """Options of a run beside its matmul and operands; `run` says what each is."""

    out: str | None
    engine: str
    order: str
    checks: str
    reference: bool
    on_stage: Callable[[str], None]


def _run(
    problem: Problem | JsonMapping | TilingPlan | None,
    tiling: TCubeTiling | JsonMapping | None,
    operands: Operands | OperandFiles | Sequence[Any] | Mapping[str, Any] | None,
    settings: Mapping[str, str] | None,
    keys: ProblemKeys,
    options: _Options,
) -> Run:
    """Validate, execute and verify one stage after the other, each with its time."""
    begin = perf_counter()
    require_engine(options.engine)
    require_order(options.order)
    keys, operands = _arrays_among(keys, operands)
    switched_on = checks_of(options.checks.split(","))
    product, tiling, settings = of_plan(problem, tiling, settings)
    request = make_request(product, settings, keys, tiling)
    require_runnable(request.chip)
    if options.out is not None:
        _require_output(options.out, operands)
    require_supported(request.problem)
    chosen = legal_or_planned(tiling, request)
    options.on_stage("making operands" if operands is None else "reading operands")
    operands_begin = perf_counter()
    given = _operands(request.problem, operands)
    operands_wall = perf_counter() - operands_begin
    options.on_stage("executing")
    launch = matmul_launch(request.problem, chosen, request.chip)
    executed = _execute(request, launch, given, switched_on, options)
    options.on_stage("verifying")
    verify_begin = perf_counter()
    verification = verify(request.problem, given, executed.c, chosen)
    verify_wall = perf_counter() - verify_begin
    reference_wall = None
    if options.reference:
        options.on_stage("timing NumPy's matmul")
        reference_wall = reference_seconds(request.problem, given)
    if options.out is not None:
        write_whole(options.out, _npy(executed.c), "--out")
    return Run(
        request=request,
        tiling=chosen,
        verification=verification,
        findings=executed.findings,
        issued=executed.issued,
        engine=executed.engine,
        order=options.order,
        operands_wall_s=operands_wall,
        wall_s=executed.wall_s,
        verify_wall_s=verify_wall,
        total_wall_s=perf_counter() - begin,
        reference_wall_s=reference_wall,
        peak_bytes=peak_bytes(),
        c=executed.c,
    )


def _require_output(out: str, operands: Operands | OperandFiles | None) -> None:
    """Refuse a file for C that is also an input, cannot be written, or is not .npy."""
    files = operands.named if isinstance(operands, OperandFiles) else {}
    inputs = [(file_option(name), array_file(path)) for name, path in files.items()]
    require_apart([("--out", out)], inputs)
    require_writable(out, "--out")
    if Path(out).suffix not in {"", ".npy"}:
        raise refuse("--out", "end in .npy", out)


def _arrays_among(
    keys: ProblemKeys, operands: object
) -> tuple[ProblemKeys, Operands | OperandFiles | None]:
    """Return the keys with the types of arrays that stand for them, and the operands as records.

    Raises
    ------
    RequestError
        If an operand is neither, or arrays are given beside `operands`.
    """
    arrays: dict[str, Array] = {
        name: _array(name, value)
        for name in _BY_NAME
        if hasattr(value := keys.get(name), "shape") or hasattr(value, "__dlpack__")
    }
    named: object = operands
    if isinstance(operands, list | tuple):
        named = dict(zip(_BY_NAME, operands, strict=False)) if len(operands) < 4 else None
    if arrays:
        if operands is not None:
            raise unable("operands", "operands excludes a, b and bias")
        named = arrays
        types = {name: value.dtype for name, value in arrays.items()}
        keys = cast("ProblemKeys", {**keys, **types})
    if named is None and operands is None:
        return keys, None
    if isinstance(named, Operands | OperandFiles):
        return keys, named
    accepted = {f.name for f in fields(Operands)}
    if not isinstance(named, Mapping) or not {"a", "b"} <= set(named) <= accepted:
        need = "be Operands, OperandFiles, (A, B), (A, B, bias) or a mapping with a and b"
        got = type(operands).__name__ if not arrays else "one array"
        if isinstance(operands, Mapping):
            got = f"a mapping with {' and '.join(map(str, operands)) or 'nothing'}"
        raise refuse("operands", need, got)
    return keys, Operands(**{name: _array(name, value) for name, value in named.items()})


def _array(name: str, given: Any) -> Array:
    """Return the NumPy view of an operand: NumPy's own, PyTorch's or another's by DLPack."""
    if isinstance(given, np.ndarray) or not hasattr(given, "__dlpack__"):
        return np.asarray(given)
    from cubecore.frontends.kernels.host_tensors import host_tensor

    tensor = host_tensor(name, given)
    if tensor is None:  # one of NumPy's numbers
        return np.asarray(given)
    return tensor.raw.view(tensor.dtype.numpy).reshape(tensor.shape)


_BY_NAME = ("a", "b", "bias")


def _operands(problem: Problem, given: Operands | OperandFiles | None) -> Operands:
    if not isinstance(given, Operands):
        return make_operands(problem, given)
    require_operands(problem, given)
    return given


@dataclass(frozen=True, eq=False, slots=True)
class _Executed:
    c: Array
    findings: tuple[SanitizerFinding, ...]
    issued: int
    wall_s: float
    engine: str


def _execute(
    request: TilingRequest,
    launch: Launch,
    operands: Operands,
    checks: frozenset[str],
    options: _Options,
) -> _Executed:
    gm = GlobalMemory()
    p = request.problem
    kinds = {name: kind for name, (_, kind) in stored_shapes(p).items()}
    tensors: dict[str, GlobalTensor] = {}
    for spec in launch.tensors:
        if spec.output:
            tensors[spec.name] = gm.allocate(spec.name, spec.size_bytes, zeroed=spec.zeroed)
            continue
        given = getattr(operands, spec.name)
        if spec.name == "scale":
            words = np.zeros(spec.size_bytes // SCALE_WORD_BYTES, np.uint64)
            words[: p.n] = scale_words(given, offset=p.epilogue.offset)
            given = words.view(np.uint8)
        else:
            given = memory_bytes(given, kinds[spec.name])
        tensors[spec.name] = gm.allocate_from(spec.name, given)
    bases = {name: tensor.address for name, tensor in tensors.items()}
    begin = perf_counter()
    outcome, ran_on = run_launch(
        launch, request.chip, gm, bases, options.engine, checks, order=options.order
    )
    wall = perf_counter() - begin
    buffer = tensors["c"].buffer
    shape = result_shape(request.problem)
    c = from_memory(buffer.data, request.problem.c_type).reshape(shape)
    valid = buffer.valid.reshape(*shape[:-1], -1)
    unwritten = _unwritten(request.problem, valid) if INITCHECK in checks else ()
    findings = (*outcome.findings, *unwritten)
    return _Executed(c, findings, outcome.issued, wall, ran_on)


def _unwritten(problem: Problem, valid: NDArray[np.uint8]) -> tuple[SanitizerFinding, ...]:
    """Return a finding if C holds uninitialised bytes; the padding of NZ may.

    `valid` marks bytes, its last axis those of C's last one.
    """
    if problem.format_c == "NZ":
        valid = from_nz(valid, problem.m, int(problem.c_type.bytes_of(problem.n)))
    missing = int(np.count_nonzero(valid == 0))
    if not missing:
        return ()
    message = (
        f"c must be written whole, got {missing} of {valid.size} B never written or written from "
        "uninitialised memory"
    )
    where = Location("kernel", 0, "c")
    return (SanitizerFinding("uninitialised", message, "end of kernel", where, EVERY_CORE),)


def _npy(values: Array) -> bytes:
    buffer = BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()
