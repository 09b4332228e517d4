"""One call of a Matmul object, as the header passes it, and the kernel's plan that it asks for."""

from collections.abc import Iterable, Sequence
from ctypes import c_char_p
from dataclasses import dataclass, replace

from cubecore.chips.model import Chip
from cubecore.chips.products import plain_outputs, quantising_mode
from cubecore.errors import refuse
from cubecore.frontends.cpp.matmul_wire import MatmulBits, MatmulCall
from cubecore.kernels.matmul.plan import MatmulPlan, matmul_plan
from cubecore.tiling.model.epilogue import Epilogue
from cubecore.tiling.model.problem import SCALE_TYPE, Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.rules.checker import check_tiling

TEMPLATES = ("NORM", "MDL", "IBSHARE")
ATOMICS = ("none", "add", "max", "min")
_FORMATS = ("ND", "NZ", "ND", "ND", "ND")
_PITCHED = 3
"""ND_ALIGN's number among the formats: rows of C begin at multiples of 32 B."""


_OF_THE_GRID = frozenset(
    {
        *("USED-CORE-NUM-POSITIVE", "USED-CORE-NUM-RANGE", "USED-CORE-NUM-PRODUCT"),
        *("SINGLE-CORE-M", "SINGLE-CORE-N", "SINGLE-CORE-K"),
    }
)
"""Rules about the shares of cores, which a kernel gives out as it likes."""


def matmul_call(raw: bytes, types: Iterable[bytes | None]) -> MatmulCall:
    """Return a call from its bytes, in which the names of types are addresses in its process."""
    call = MatmulCall.from_buffer_copy(raw)
    call.types = (c_char_p * 4)(*types)
    return call


@dataclass(frozen=True, slots=True)
class ObjectCall:
    """The part of a call that its program depends on, but for addresses; it can be looked up."""

    types: tuple[str, ...]
    tiling: TCubeTiling
    org: tuple[int, ...]
    trans: tuple[bool, ...]
    formats: tuple[int, ...]
    template: str
    unit_flag: bool
    preload: bool
    quantises: int
    channel_split: bool
    stepped: bool
    """True if tiles come one by one, and chunks of several would change their documented order."""
    own_moves: bool
    """True if functions of the user's own load A or B: base block by base block."""
    scales_trans: tuple[bool, ...] = ()
    """Of MxMatmul: whether the scales of A and of B are transposed."""

    @classmethod
    def of(cls, call: MatmulCall) -> "ObjectCall":
        """Return what a call asks for."""
        names = tuple((name or b"").decode() for name in call.types)
        tiling = TCubeTiling(*call.tiling)
        return cls(
            types=names,
            tiling=tiling,
            org=tuple(call.org),
            trans=tuple(map(bool, call.trans)),
            formats=tuple(call.formats),
            template=TEMPLATES[call.template_],
            unit_flag=bool(call.unit_flag),
            preload=bool(call.preload),
            quantises=call.quantises,
            channel_split=bool(call.channel_split),
            stepped=bool(call.tiles or call.bits & MatmulBits.EACH)
            and _chunks_part(tiling, call.single),
            own_moves=bool(call.bits & (MatmulBits.OWN_A | MatmulBits.OWN_B)),
            scales_trans=tuple(map(bool, call.scales_trans)) if call.scaled else (),
        )

    def problem(self, chip: Chip, m: int, n: int, k: int) -> Problem:
        """Return the matmul of an object of these types.

        Raises
        ------
        RequestError
            If there is no such product.
        """
        a, b, c, bias = self.types
        format_a, format_b, format_c = (_FORMATS[number] for number in self.formats)
        problem = Problem(
            chip=chip.name,
            m=m,
            n=n,
            k=k,
            format_a=format_a,
            format_b=format_b,
            format_c=format_c,
            a=a,
            b=b,
            c=c,
            bias=bias or None,
            scale_a=SCALE_TYPE if self.scales_trans else None,
            trans_a=self.trans[0],
            trans_b=self.trans[1],
            template=self.template,
            unit_flag=self.unit_flag,
        )
        accumulator = problem.accumulator_type.name
        if not self.quantises and c in plain_outputs(accumulator):
            return problem
        each = "column" if self.quantises > 1 else "one"
        mode = quantising_mode(accumulator, c, each)
        if mode is None:
            need = f"be a type that fixpipe makes of {accumulator}"
            raise refuse("the Matmul object's C", need, c)
        scale = 1.0 if each == "one" else None
        return replace(problem, epilogue=Epilogue(quant=mode, scale=scale))

    def require_legal(self, chip: Chip) -> None:
        """Refuse a tiling that breaks a rule.

        Raises
        ------
        RequestError
            One violation for each rule.
        """
        t = self.tiling
        # Rules need a whole tiling and problem. Shapes of the object stand in for fields that a
        # constant tiling lacks; a grid beyond the AICs means a mix launch, as each AIV is a client
        # there.
        if not t.M:  # all of it constants of the header
            m, n, ka, kb, _ = self.org
            if min(m, n, ka, kb) < 1:
                raise refuse(
                    "the shape of a Matmul object",
                    "be in its tiling or given by SetOrgShape",
                    f"M = {m}, N = {n}, Ka = {ka}, Kb = {kb}",
                    "call SetOrgShape before SetTensorA",
                )
            t = replace(t, M=m, N=n, Ka=ka, Kb=kb, usedCoreNum=1)
        problem = self.problem(chip, max(t.M, 1), max(t.N, 1), max(t.Ka, 1))
        if t.Kb != t.Ka:
            problem = replace(problem, kb=max(t.Kb, 1))
        if t.usedCoreNum > chip.aic_count:
            problem = replace(problem, launch="mix")
        found = check_tiling(t, problem, chip)
        broken = [each for each in found.findings if each.rule not in _OF_THE_GRID]
        if broken:
            raise refuse("the tiling of a Matmul object", "be legal", broken[0].message)

    def plan(self, chip: Chip) -> MatmulPlan:
        """Return the kernel's plan.

        Raises
        ------
        RequestError
            If the kernel does not carry what is asked.
        """
        m, n, ka, kb, kc = self.org
        problem = self.problem(chip, m, n, ka)
        tiling = _by_tiles(self.tiling) if self.stepped else self.tiling
        tiling = _by_base_blocks(tiling) if self.own_moves else tiling
        plan = matmul_plan(problem, tiling, chip, preload=self.preload)
        if kb != ka:
            b = plan.b
            b = replace(b, pitch=kb) if b.k_inner else replace(b, rows=kb)
            plan = replace(plan, b=b)
        plan = self._with_scales(plan)
        pitch, split = self._pitch(problem, kc), self.channel_split
        return replace(plan, c=replace(plan.c, pitch=pitch, channel_split=split))

    def _with_scales(self, plan: MatmulPlan) -> MatmulPlan:
        """Return a plan whose scales are transposed as they are, whatever their operands are."""
        a, b = plan.a.scales, plan.b.scales
        if a is None or b is None:
            return plan
        trans_a, trans_b = self.scales_trans
        return replace(
            plan,
            a=replace(plan.a, scales=replace(a, k_inner=not trans_a)),
            b=replace(plan.b, scales=replace(b, k_inner=trans_b)),
        )

    def _pitch(self, problem: Problem, wanted: int) -> int | None:
        """Return the elements from one row of C to the next, None for its N."""
        if self.formats[2] == _PITCHED:
            unit = 32 * 8 // problem.c_type.bits
            return -(-(wanted or problem.n) // unit) * unit
        return wanted or None


def _chunks_part(t: TCubeTiling, single: Sequence[int]) -> bool:
    """Return whether chunks of tiles come in another order than tiles along one axis by one."""
    if t.iterateOrder == 1:
        return t.stepM > 1 and t.stepN * t.baseN < single[1]
    return t.stepN > 1 and t.stepM * t.baseM < single[0]


def _by_tiles(t: TCubeTiling) -> TCubeTiling:
    """Return a tiling whose outer axis has chunks of one tile, in as many buffers."""
    if t.iterateOrder == 1:
        return replace(t, stepM=1, depthA1=max(t.depthA1 // t.stepM, 1))
    return replace(t, stepN=1, depthB1=max(t.depthB1 // t.stepN, 1))


def _by_base_blocks(t: TCubeTiling) -> TCubeTiling:
    """Return a tiling whose chunks are base blocks, in two buffers where it had so many."""
    steps = {"stepM": 1, "stepN": 1, "stepKa": 1, "stepKb": 1}
    return replace(t, **steps, depthA1=min(t.depthA1, 2), depthB1=min(t.depthB1, 2))
