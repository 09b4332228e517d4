"""What several tests need: programs on one core, matmuls from a tiling, independent oracles.

Nothing here uses `cubecore.layouts` or `cubecore.numerics`: layouts are reshapes, products are
NumPy's in int64 or float64.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.chips import Chip, chip
from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.launch import CoreProgram, Launch
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.machine.execute.core import Core, CoreId
from cubecore.machine.execute.scheduler import Task, run
from cubecore.machine.memory.buffers import GlobalMemory, MemoryBuffer
from cubecore.machine.sanitize.findings import SanitizerFinding
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling

Array = NDArray[Any]
A2 = chip("Ascend910B3")
AIC, AIV = 0, 1
"""The sub-core of a Cube program, and of a vector program."""

# --- oracles

_ORDERS = {"ZZ": (0, 2, 1, 3), "ZN": (0, 2, 3, 1), "NZ": (2, 0, 1, 3)}


def lay_out(matrix: Array, order: str, fractal: tuple[int, int], fill: float = 0) -> Array:
    """Return `matrix` flat in ZZ, ZN or NZ of `fractal` (rows, columns), padded with `fill`."""
    (rows, cols), (high, wide) = matrix.shape, fractal
    whole = np.full((-(-rows // high) * high, -(-cols // wide) * wide), fill, matrix.dtype)
    whole[:rows, :cols] = matrix
    tall, broad = whole.shape
    cut = whole.reshape(tall // high, high, broad // wide, wide)
    return cut.transpose(_ORDERS[order]).reshape(-1)


def read_out(flat: Array, order: str, shape: tuple[int, int], fractal: tuple[int, int]) -> Array:
    """Return the matrix of `shape` that `flat` begins with: the inverse of `lay_out`."""
    (rows, cols), (high, wide) = shape, fractal
    down, across = -(-rows // high), -(-cols // wide)
    axes = [(down, high, across, wide)[axis] for axis in _ORDERS[order]]
    cut = flat[: down * high * across * wide].reshape(axes)
    back = cut.transpose(np.argsort(_ORDERS[order]))
    return back.reshape(down * high, across * wide)[:rows, :cols]


def whole_numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Return random integers in [-8, 8] as `dtype`: float products of them are exact."""
    return rng.integers(-8, 9, shape).astype(element_type(dtype).numpy)


# --- one core


@dataclass(frozen=True)
class CoreRun:
    """What a program left: global tensors, local memories by `Mem`, and findings."""

    tensors: Mapping[str, Array]
    written: Mapping[str, Array]
    """Which bytes of each tensor are initialised."""
    local: Mapping[Mem, MemoryBuffer]
    findings: tuple[SanitizerFinding, ...]

    @property
    def messages(self) -> list[str]:
        """The findings' sentences."""
        return [finding.message for finding in self.findings]

    @property
    def ids(self) -> list[str]:
        """The findings' ids."""
        return [finding.id for finding in self.findings]

    def at(self, mem: Mem, dtype: str, count: int, address: int = 0) -> Array:
        """Return `count` elements of a local memory from a byte address on."""
        numpy_type = element_type(dtype).numpy
        end = address + count * numpy_type.itemsize
        return self.local[mem].data[address:end].view(numpy_type)


Build = Callable[[Builder, Mapping[str, Expr]], None]


def run_core(
    build: Build,
    *,
    inputs: Mapping[str, Array] | None = None,
    outputs: Mapping[str, tuple[tuple[int, ...], str]] | None = None,
    local: Mapping[tuple[Mem, int], Array] | None = None,
    sub: int = AIC,
    on: Chip = A2,
) -> CoreRun:
    """Run a hand-written program on one core.

    `build` issues it; it is given the builder and the addresses of the global tensors by name.
    `inputs` are tensors with values, `outputs` (shape, dtype) ones nobody has written. `local` puts
    values into local memories, at (memory, byte address), before the program starts.
    """
    gm = GlobalMemory()
    placed = {name: gm.allocate_from(name, values) for name, values in (inputs or {}).items()}
    shapes = {name: (v.shape, v.dtype) for name, v in (inputs or {}).items()}
    for name, (shape, dtype) in (outputs or {}).items():
        shapes[name] = (shape, element_type(dtype).numpy)
        placed[name] = gm.allocate(name, int(np.prod(shape)) * shapes[name][1].itemsize)
    builder = Builder("test")
    slots = {name: builder.slot(name) for name in placed}
    build(builder, {name: Expr.of(slot) for name, slot in slots.items()})
    program = builder.finish()
    kept: dict[Mem, MemoryBuffer] = {}

    def body(core: Core) -> None:
        for (mem, address), values in (local or {}).items():
            _poke(core, mem, address, values)
        program.run(core, {slot: placed[name].address for name, slot in slots.items()})
        core.flush()
        kept.update(core.memories)

    outcome = run(on, gm, [Task(CoreId(0, sub), body)])
    return CoreRun(
        tensors={
            n: t.buffer.data.view(shapes[n][1]).reshape(shapes[n][0]) for n, t in placed.items()
        },
        written={name: tensor.buffer.valid.astype(bool) for name, tensor in placed.items()},
        local=kept,
        findings=outcome.findings,
    )


def _poke(core: Core, mem: Mem, address: int, values: Array) -> None:
    buffer = core.memory(mem)
    assert buffer is not None
    raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    buffer.data[address : address + raw.size] = raw
    buffer.valid[address : address + raw.size] = 1


# --- matmuls


def make_tiling(problem: Problem, **fields: int) -> TCubeTiling:
    """Return a tiling for `problem`: one core, 16 x 16 x C0 blocks, no buffer doubled, no step.

    `fields` replace that; usedCoreNum, depthA1 and depthB1 follow from the others unless given.
    """
    p = problem
    single = {"singleCoreM": p.m, "singleCoreN": p.n, "singleCoreK": p.shared_k}
    base = {"baseM": 16, "baseN": 16, "baseK": max(p.a_type.c0, 16)}
    ones = ("stepM", "stepN", "stepKa", "stepKb", "dbL0A", "dbL0B", "dbL0C", "iterateOrder")
    t = (
        dict.fromkeys(FIELDS, 0)
        | {"M": p.m, "N": p.n, "Ka": p.k, "Kb": p.k if p.kb is None else p.kb}
        | {"isBias": int(p.bias is not None)}
        | (single | base | dict.fromkeys(ones, 1) | fields)
    )
    if "usedCoreNum" not in fields:
        m, n = -(-t["M"] // t["singleCoreM"]), -(-t["N"] // t["singleCoreN"])
        t["usedCoreNum"] = m * n * -(-t["Ka"] // t["singleCoreK"])
    depths = {"depthA1": t["stepM"] * t["stepKa"], "depthB1": t["stepN"] * t["stepKb"]}
    return TCubeTiling(**(t | depths | fields))


def matrix_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """Return the shapes of A and B as matrices, a batch's first; [k, m] for a transposed A."""
    p = problem
    batch = (p.batch,) if p.batch > 1 else ()
    return {
        "a": (*batch, *((p.k, p.m) if p.trans_a else (p.m, p.k))),
        "b": (*batch, *((p.n, p.k) if p.trans_b else (p.k, p.n))),
    }


def make_operands(problem: Problem, seed: int = 0) -> dict[str, Array]:
    """Return whole numbers for a, b and bias; see `matrix_shapes`."""
    p, rng = problem, np.random.default_rng(seed)
    shapes = matrix_shapes(p)
    found = {name: whole_numbers(rng, shapes[name], getattr(p, name)) for name in "ab"}
    if p.bias is not None:
        found["bias"] = whole_numbers(rng, (p.n,), p.bias)
    return found


def expected(problem: Problem, operands: Mapping[str, Array]) -> Array:
    """Return the product (and bias) in int64 or float64, without epilogue or rounding."""
    wide = np.int64 if problem.a_type.kind == "int" else np.float64
    a, b = (operands[name].astype(wide) for name in "ab")
    c = (np.swapaxes(a, -1, -2) if problem.trans_a else a) @ (
        np.swapaxes(b, -1, -2) if problem.trans_b else b
    )
    return c + operands["bias"].astype(wide) if problem.bias is not None else c


@dataclass(frozen=True)
class MatmulRun:
    """C, which elements of it were written, and findings."""

    c: Array
    written: Array
    findings: tuple[SanitizerFinding, ...]


def run_matmul(
    problem: Problem,
    tiling: TCubeTiling,
    operands: Mapping[str, Array],
    *,
    on: Chip = A2,
    only: Collection[int] | None = None,
) -> MatmulRun:
    """Run the kernel that `tiling` implies, on all of its cores or on those in `only`."""
    return run_product(matmul_launch(problem, tiling, on), problem, operands, on=on, only=only)


def run_product(
    launch: Launch,
    problem: Problem,
    operands: Mapping[str, Array],
    *,
    on: Chip = A2,
    only: Collection[int] | None = None,
) -> MatmulRun:
    """Run a launch that computes the product, on all of its cores or on those in `only`."""
    gm, bases, c = GlobalMemory(), {}, None
    for spec in launch.tensors:
        if spec.output:
            c = gm.allocate(spec.name, spec.size_bytes, zeroed=spec.zeroed)
            bases[spec.name] = c.address
        else:
            flat = as_stored(problem, operands)[spec.name]
            assert flat.nbytes == spec.size_bytes
            bases[spec.name] = gm.allocate_from(spec.name, flat).address
    assert c is not None
    chosen = [core for core in launch.cores if only is None or core.core in only]
    tasks = [Task(CoreId(core.core, core.sub), _body(core, bases)) for core in chosen]
    outcome = run(on, gm, tasks)
    values = c.buffer.data.view(problem.c_type.numpy)
    valid = c.buffer.valid.reshape(values.size, -1).all(axis=-1)
    return MatmulRun(result_of(problem, values), result_of(problem, valid), outcome.findings)


def as_stored(problem: Problem, operands: Mapping[str, Array]) -> dict[str, Array]:
    """Return the operands as global memory holds them, and scales as words of 64 bits."""
    found = {
        name: stored(values, getattr(problem, f"format_{name}", "ND"))
        for name, values in operands.items()
    }
    if "V" in (problem.epilogue.quant or "")[:1]:
        words = np.zeros(-(-(problem.n + 15) // 16) * 16, np.uint64)
        scales = np.array(problem.epilogue.scale, np.float32).view(np.uint32)
        words[: problem.n] = scales
        words |= np.uint64((problem.epilogue.offset & 511) << 37 | 1 << 46)
        found["scale"] = words
    return found


def stored(values: Array, layout: str) -> Array:
    """Return the elements as global memory holds them: NZ of each matrix, 4-bit ones in pairs."""
    if layout == "NZ":
        c0 = 256 // 4 if values.dtype == element_type("int4").numpy else 32 // values.itemsize
        flat = values.reshape(-1, *values.shape[-2:])
        values = np.concatenate([lay_out(matrix, "NZ", (16, c0)) for matrix in flat])
    if values.dtype != element_type("int4").numpy:
        return values
    codes = values.reshape(-1).astype(np.int8).view(np.uint8) & 15
    return codes[0::2] | codes[1::2] << 4


def result_of(problem: Problem, flat: Array) -> Array:
    """Return C [m, n], a batch's [batch, m, n], from its elements in global memory."""
    p = problem
    each = flat.reshape(p.batch, -1)
    if p.format_c == "NZ":
        fractal = (16, 32 if p.c == "int8" else 16)
        found = np.stack([read_out(one, "NZ", (p.m, p.n), fractal) for one in each])
    else:
        found = each.reshape(p.batch, p.m, p.n)
    return found if p.batch > 1 else found[0]


def _body(core: CoreProgram, bases: Mapping[str, int]) -> Callable[[Core], None]:
    return lambda machine: core.program.run(machine, core.addresses(bases))


Issued = tuple[Instruction, tuple[int, ...]]
_TENSOR_BITS = 40


def listing(launch: Launch, core: int = 0) -> list[Issued]:
    """Return everything that a core issues; see `tensor_of` for global addresses."""
    bases = {t.name: (i + 1) << _TENSOR_BITS for i, t in enumerate(launch.tensors)}
    chosen = next(c for c in launch.cores if c.core == core)
    return list(chosen.program.listing(chosen.addresses(bases)))


def tensor_of(launch: Launch, address: int) -> tuple[str, int]:
    """Return (tensor, byte offset) of a global address in a listing."""
    number, offset = divmod(address, 1 << _TENSOR_BITS)
    return launch.tensors[number - 1].name, offset


def issued(launch: Launch, kind: type[Instruction], core: int = 0) -> list[Any]:
    """Return (template, addresses) of the instructions of one kind, in program order."""
    return [pair for pair in listing(launch, core) if isinstance(pair[0], kind)]
