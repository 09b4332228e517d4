"""The matmul kernel that a TCubeTiling implies (D12, D13).

Each core walks its singleCoreM x singleCoreN block of C in tiles of baseM x baseN. MTE2 brings A
and B to L1, template by template: MDL in chunks of stepM x stepKa (stepN x stepKb) base blocks,
NORM and IBSHARE base block by base block. MTE1 brings base blocks to L0; the Cube accumulates over
K in L0C; fixpipe writes C. The order of everything is kept by flags, and by the unit flag if it is
on.
"""

from collections.abc import Iterator, Sequence

from cubecore.chips.model import Chip
from cubecore.errors import RequestError, Violation
from cubecore.isa.cube.mad import Mad
from cubecore.isa.cube.mad_mx import MadMx
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.declare.scale_registers import SetAtomic, SetFpc, SetQuantPre
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.scalar.control_registers import SetHf32Mode
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Event
from cubecore.kernels.matmul.block import BlockShape, BlockTree
from cubecore.kernels.matmul.plan import MatmulPlan, matmul_plan
from cubecore.numerics.quantisation import scale_words
from cubecore.tiling.model.core_grid import CoreBlock, problem_blocks
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.rules.capabilities import option_violations
from cubecore.units import FRACTAL_ROWS, SCALE_WORD_BYTES, align_up


def matmul_launch(
    problem: Problem,
    tiling: TCubeTiling,
    chip: Chip,
    step: str | None = None,
    blocks: Sequence[tuple[CoreBlock, ...]] | None = None,
    *,
    padded: bool = False,
    preload: bool = True,
    by_vector_cores: bool = False,
    drains_l0: bool = False,
) -> Launch:
    """Return the launch of the kernel that `tiling` implies for `problem` on `chip`.

    The tiling must be legal in the effective reading. `step` names the scalar cost of a base-K step
    (`scalar_step_cycles`): what kind of kernel the code is taken to be; the template's by default.
    `blocks` are the blocks of C that each AI Core computes in turn; the tiling's grid by default.
    `padded` lays A and B out in rows an odd number of 512 B apart where they are ND. Without
    `preload` template MDL asks for a chunk that holds all of K when a tile needs it, not while the
    one before is computed (doMTE2Preload, which the Matmul API leaves off). `by_vector_cores`, on
    3510 and to be timed alone, has vector cores write C, which fixpipe leaves in their buffers.
    `drains_l0` moves blocks of a new chunk into L0 only when all products of the one before are
    done, as flags do that a compiler sets at the head of a loop.

    Raises
    ------
    RequestError
        If the kernel does not support an option of the problem, or the tiling has other sizes.
    """
    require_supported(problem)
    tiling.require_match(*problem.extents)
    options = {
        "padded": padded,
        "preload": preload,
        "by_vector_cores": by_vector_cores,
        "drains_l0": drains_l0,
    }
    plan = matmul_plan(problem, tiling, chip, step, **options)
    trees: dict[tuple[BlockShape, ...], CoreTree] = {}
    cores = []
    for core, core_blocks in enumerate(blocks or blocks_of_cores(plan)):
        shares = core_shares(plan, core_blocks)
        tree = trees.get(shares)
        if tree is None:
            tree = trees[shares] = CoreTree(plan, shares)
        cores.append(tree.on_core(core, core_blocks))
    return Launch(launch_tensors(plan), tuple(cores), plan.step)


def launch_tensors(plan: MatmulPlan) -> tuple[TensorSpec, ...]:
    """Return the tensors of a launch."""
    p = plan.problem
    tensors = [
        TensorSpec("a", p.batch * plan.a.stored_bytes),
        TensorSpec("b", p.batch * plan.b.stored_bytes),
    ]
    tensors += [
        TensorSpec(name, p.batch * scales.stored_bytes)
        for name, scales in (("scale_a", plan.a.scales), ("scale_b", plan.b.scales))
        if scales is not None
    ]
    if p.bias_type is not None:
        tensors.append(TensorSpec("bias", p.bias_type.bytes_of(p.n)))
    if p.scales_columns:
        # Scales are copied sixteen at a time, from any column on.
        padded = align_up(p.n + FRACTAL_ROWS - 1, FRACTAL_ROWS)
        tensors.append(TensorSpec("scale", padded * SCALE_WORD_BYTES))
    c_bytes = p.batch * plan.c.stored_bytes
    tensors.append(TensorSpec("c", c_bytes, output=True, zeroed=p.split_k))
    return tuple(tensors)


def blocks_of_cores(plan: MatmulPlan) -> list[tuple[CoreBlock, ...]]:
    """Return the blocks of C that each AI Core computes, in turn.

    cube: one. mix: those of the AIV clients that share it (D12); how the clients pass their
    requests on is not modelled.
    """
    p, chip = plan.problem, plan.chip
    blocks = problem_blocks(p, chip, plan.tiling)
    each = 1 if p.launch == "cube" else max(chip.mix_aiv_per_aic, 1)
    return [blocks[i : i + each] for i in range(0, len(blocks), each)]


def core_shares(plan: MatmulPlan, blocks: tuple[CoreBlock, ...]) -> tuple[BlockShape, ...]:
    """Return what a core's tree depends on for each of its blocks.

    IBSHARE: a client whose block has the same columns (rows) as the one before on this core finds
    B (A) in L1, if that is where all of it was.
    """
    shares = []
    for index, block in enumerate(blocks):
        shared = plan.problem.template == "IBSHARE" and index > 0 and block.batches == 1
        kept = _kept(blocks[index - 1], block) if shared else ""
        first = block.k0 == 0
        shares.append(
            BlockShape(block.m_len, block.n_len, block.k_len, block.batches, kept, has_bias=first)
        )
    return tuple(shares)


def _kept(before: CoreBlock, block: CoreBlock) -> str:
    """Return which operand is the same for two blocks: ``a``, ``b`` or none."""
    if (before.k0, before.k_len, before.batch0) != (block.k0, block.k_len, block.batch0):
        return ""
    if (before.m0, before.m_len) == (block.m0, block.m_len):
        return "a"
    return "b" if (before.n0, before.n_len) == (block.n0, block.n_len) else ""


def require_supported(problem: Problem) -> None:
    """Refuse what this kernel does not carry.

    Raises
    ------
    RequestError
        One violation for each option.
    """
    product = MadMx if problem.mx else Mad
    inputs = product.__dataclass_fields__["a_type"].metadata["types"]
    supported: tuple[tuple[str, object, tuple[object, ...]], ...] = (
        ("kb", problem.kb, (None, problem.k)),
        ("a", problem.a_type.name, inputs),
        ("layout", problem.layout, (None, "NORMAL")),
        *((f"pos_{x}", getattr(problem, f"pos_{x}"), ("GM",)) for x in "abc"),
    )
    violations = [
        Violation(
            name,
            "",
            "",
            "",
            f"{name} {_word(value)} can be planned but not executed or timed; "
            f"use {_words(allowed)}",
        )
        for name, value, allowed in supported
        if value not in allowed
    ]
    if problem.split_k and problem.chip_record.arch not in SetAtomic.archs:
        sentence = f"split_k needs atomic addition, which no page gives {problem.chip}"
        violations.append(Violation("split_k", "", "", "", sentence))
    violations += option_violations(problem)
    if violations:
        raise RequestError(violations)


def _words(values: tuple[object, ...]) -> str:
    return " or ".join(_word(value) for value in values)


def _word(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def settings_of(problem: Problem) -> Iterator[Instruction]:
    """Yield what is set once, before anything else."""
    epilogue = problem.epilogue
    if problem.hf32:
        yield SetHf32Mode(enable=True)
    if problem.split_k:
        yield SetAtomic(operation="add", dtype=problem.c_type)
    if problem.scales_columns:
        yield SetFpc(scales_at=0)
    elif isinstance(epilogue.scale, (int, float)):
        words = scale_words(float(epilogue.scale), offset=epilogue.offset)
        yield SetQuantPre(scale=int(words))


def settle(builder: Builder, up: Sequence[Event]) -> None:
    """Hold MTE2 until all that the client before brought to L1 is read: buffers now lie elsewhere.

    The flags of free buffers are up before and after.
    """
    free = [event for event in up if event[:2] == ("MTE1", "MTE2")]
    handshake = ("MTE2", "MTE1", 0)
    for kind, events in ((WaitFlag, free), (SetFlag, [handshake]), (WaitFlag, [handshake])):
        for src, dst, event in events:
            builder.issue(kind(src=src, dst=dst, event_id=event))
    for src, dst, event in free:
        builder.issue(SetFlag(src=src, dst=dst, event_id=event))


class CoreTree:
    """The tree of a core that computes blocks of C one after another."""

    def __init__(self, plan: MatmulPlan, shares: tuple[BlockShape, ...]) -> None:
        names = "_".join(f"{share.m}x{share.n}x{share.k}" for share in shares)
        builder = Builder(f"matmul_{names}", plan.step)
        self._blocks: list[BlockTree] = []
        for setting in settings_of(plan.problem):
            builder.issue(setting)
        for number, share in enumerate(shares):
            before = self._blocks[-1] if self._blocks else None
            if before is not None and not before.share.lies_as(share):
                settle(builder, before.up)
            with builder.part(number, len(shares)):
                self._blocks.append(BlockTree(plan, builder, share, before))
        for src, dst, event in self._blocks[-1].up:
            builder.issue(WaitFlag(src=src, dst=dst, event_id=event))
        if plan.problem.split_k:
            builder.issue(SetAtomic())
        self._program = builder.finish()

    def on_core(self, core: int, blocks: tuple[CoreBlock, ...]) -> CoreProgram:
        """Return the tree with its slots filled for a core that computes `blocks`."""
        pairs = zip(self._blocks, blocks, strict=True)
        slots = {var: offset for tree, block in pairs for var, offset in tree.slots(block).items()}
        return CoreProgram(core, self._program, slots)
