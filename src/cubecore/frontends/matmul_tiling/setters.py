"""The vendor's Matmul tiling classes, setter by setter, over cubecore's planner.

For code that is ported: `MatmulApiTiling` (one core), `MultiCoreMatmulTiling` and
`BatchMatmulTiling` have the documented setters in snake_case with the documented parameters, and
`get_tiling` fills the same 50 fields. What differs on purpose:

- A refusal raises, with the reason; the vendor's setters return -1, and so does its GetTiling.
- The order of calls makes no difference, and `get_tiling` may be called again.
- Setters that the vendor's library accepts and ignores work (a fixed baseK, ranges of shares and
  blocks, multiples of shares) or say why not (`set_double_buffer`).
- Enumerators are texts: ``"GM"``, ``"ND"``, ``"FIRSTM"``, ``"MXMODE"``; element types are given in
  the vendor's spelling or in ours. -1 leaves a number to the planner, as it does there.
"""

from dataclasses import replace
from typing import NamedTuple

from cubecore.aliases import Json
from cubecore.chips import Chip, chip, default_chip
from cubecore.dtypes import element_type
from cubecore.errors import InfeasibleError, refuse, unable
from cubecore.frontends.matmul_tiling.requested import FORMATS, FROM, RequestedTiling, number, word
from cubecore.planning.event_ranking import timed_plan
from cubecore.tiling.model.choices import LAUNCHES
from cubecore.tiling.model.core_grid import batch_groups
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.repair.infeasibility import explained
from cubecore.tiling.rules.capabilities import validate
from cubecore.tiling.solver.solver import Solution
from cubecore.units import ceil_div

_BASE = ("baseM", "baseN", "baseK")
_SINGLE = ("singleCoreM", "singleCoreN", "singleCoreK")


class CoreNum(NamedTuple):
    """Cores that compute, and how many of them divide M and N."""

    dim: int
    m_dim: int
    n_dim: int


class BatchCoreNum(NamedTuple):
    """As `CoreNum`, for one matrix, and how many matrices are computed at a time.

    cubecore deals a batch out along one axis, so that `batch_core_n` is 1.
    """

    dim: int
    m_dim: int
    n_dim: int
    batch_core_m: int
    batch_core_n: int


class SingleShape(NamedTuple):
    """The share of one core, elements."""

    m: int
    n: int
    k: int


class MatmulConfigParams(NamedTuple):
    """The parameters of `set_matmul_config_params`, with the vendor's defaults."""

    mm_config_type: int = 1
    enable_l1_cache_ub: bool = False
    schedule_type: str = "INNER_PRODUCT"
    traverse: str = "NOSET"
    en_vec_nd2nz: bool = False


ALTERNATIVES = 5
"""Tilings beside the best that `MatmulApiTilingBase.solution` holds, at most."""


class MatmulApiTilingBase:
    """The setters common to the three classes (vendor's Matmul Tiling classes)."""

    def __init__(self, target: str | Chip | None = None, *, launch: str = "cube") -> None:
        """Start with nothing set, for a chip by name or a what-if chip; None is the default chip.

        `launch` is ``cube``, or ``mix``, which counts vector cores (D12).

        Raises
        ------
        RequestError
            If no chip has that name, or the launch is unknown.
        """
        named = default_chip() if target is None else target
        self._chip = chip(named) if isinstance(named, str) else named
        self._requested = RequestedTiling(keys={"launch": word("launch", launch, LAUNCHES)})
        self._solution: Solution | None = None
        self._answer: TCubeTiling | None = None

    # --- operands

    def set_a_type(
        self, pos: str, cube_format: str, data_type: str, is_trans: bool = False
    ) -> None:
        """Say where A lies, how it is stored and of what, and whether as [k, m]."""
        self._requested.operand("a", pos, cube_format, data_type)
        self._requested.keys["trans_a"] = bool(is_trans)

    def set_b_type(
        self, pos: str, cube_format: str, data_type: str, is_trans: bool = False
    ) -> None:
        """Say where B lies, how it is stored and of what, and whether as [n, k]."""
        self._requested.operand("b", pos, cube_format, data_type)
        self._requested.keys["trans_b"] = bool(is_trans)

    def set_c_type(self, pos: str, cube_format: str, data_type: str) -> None:
        """Say where C goes, how it is stored and of what."""
        self._requested.operand("c", pos, cube_format, data_type)

    def set_bias_type(self, pos: str, cube_format: str, data_type: str) -> None:
        """Say of what the bias row is. It lies in global memory, as ND."""
        if pos != "GM" and pos in FROM:
            why = "cubecore's kernels read the bias row from global memory"
            raise refuse("set_bias_type.pos", "be GM", repr(pos), why)
        word("set_bias_type.pos", pos, ("GM",))
        word("set_bias_type.cube_format", cube_format, ("ND",))
        self._requested.bias_type = element_type(data_type, "set_bias_type.data_type").name

    def enable_bias(self, is_bias_in: bool = False) -> None:
        """Say whether a bias row is added."""
        self._requested.bias = bool(is_bias_in)

    def set_bias(self, is_bias_in: bool = False) -> None:
        """Say whether a bias row is added: `enable_bias` by its older name."""
        self.enable_bias(is_bias_in)

    def set_scale_a_type(
        self, scale_pos: str, scale_type: str, is_scale_trans: bool = False
    ) -> None:
        """Say that scaleA lies where A does. Its format and transposition change no field."""
        word("set_scale_a_type.scale_type", scale_type, FORMATS)
        self._requested.scales_from["a"] = word("set_scale_a_type.scale_pos", scale_pos, FROM)

    def set_scale_b_type(
        self, scale_pos: str, scale_type: str, is_scale_trans: bool = True
    ) -> None:
        """Say that scaleB lies where B does. Its format and transposition change no field."""
        word("set_scale_b_type.scale_type", scale_type, FORMATS)
        self._requested.scales_from["b"] = word("set_scale_b_type.scale_pos", scale_pos, FROM)

    def set_mad_type(self, mad_type: str) -> None:
        """Choose ``NORMAL``, ``HF32`` (float32 inputs rounded) or ``MXMODE`` (scaled inputs)."""
        self._requested.mad = word("set_mad_type.mad_type", mad_type, ("NORMAL", "HF32", "MXMODE"))

    def set_dequant_type(self, dequant_type: str) -> None:
        """Choose one scale for C (``SCALAR``) or one a column (``TENSOR``), where C needs one."""
        subject = "set_dequant_type.dequant_type"
        self._requested.one_scale = word(subject, dequant_type, ("SCALAR", "TENSOR")) == "SCALAR"

    def set_sparse(self, is_sparse_in: bool = False) -> None:
        """Say whether B is stored as half, with an index; either way the tiling is a whole B's.

        Base blocks that hold a whole B hold its half and the index as well.
        """

    # --- shape and batch

    def set_org_shape(self, org_m: int, org_n: int, org_ka: int, org_kb: int | None = None) -> None:
        """Say how large the stored matrices are; Ka and Kb may differ."""
        extents = (org_m, org_n, org_ka, org_ka if org_kb is None else org_kb)
        names = ("org_m", "org_n", "org_ka", "org_kb")
        for name, value in zip(names, extents, strict=True):
            number(f"set_org_shape.{name}", value)
        self._requested.org = extents

    def set_shape(self, m: int, n: int, k: int) -> None:
        """Say what is computed; -1 takes the original size, of K the shorter of Ka and Kb."""
        for name, value in zip("mnk", (m, n, k), strict=True):
            number(f"set_shape.{name}", value, may_be_open=True)
        self._requested.shape = (m, n, k)

    def set_a_layout(self, b: int, s: int, n: int, g: int, d: int) -> None:
        """Copy the axes B, S, N, G, D of A through to the kernel."""
        self._requested.layout("A", zip("BSNGD", (b, s, n, g, d), strict=True))

    def set_b_layout(self, b: int, s: int, n: int, g: int, d: int) -> None:
        """Copy the axes B, S, N, G, D of B through to the kernel."""
        self._requested.layout("B", zip("BSNGD", (b, s, n, g, d), strict=True))

    def set_c_layout(self, b: int, s1: int, n: int, g: int, s2: int) -> None:
        """Copy the axes B, S1, N, G, S2 of C through to the kernel."""
        axes = ("B", "S1", "N", "G", "S2")
        self._requested.layout("C", zip(axes, (b, s1, n, g, s2), strict=True))

    def set_batch_info_for_normal(self, batch_a: int, batch_b: int, m: int, n: int, k: int) -> None:
        """Set the layouts of a batch of plain matrices: [batch, m, k] by [batch, k, n].

        The page does not say which fields that are; here they get the batch and N = G = 1.
        """
        if batch_a != batch_b:
            why = "cubecore repeats no matrix over a batch"
            subject = "set_batch_info_for_normal.batch_b"
            raise refuse(subject, f"equal batch_a = {batch_a}", batch_b, why)
        self.set_a_layout(batch_a, m, 1, 1, k)
        self.set_b_layout(batch_b, n, 1, 1, k)
        self.set_c_layout(batch_a, m, 1, 1, n)

    def set_batch_num(self, batch: int) -> None:
        """Say how many matrices there are."""
        self._requested.keys["batch"] = number("set_batch_num.batch", batch)
        self._requested.fields["BatchNum"] = batch

    # --- what the planner keeps to

    def set_fix_split(self, base_m: int = -1, base_n: int = -1, base_k: int = -1) -> None:
        """Fix the base block; baseK too, which the vendor's library takes and does not use."""
        values = zip(_BASE, (base_m, base_n, base_k), strict=True)
        self._requested.narrow("set_fix_split", self._requested.fixed, values)

    def set_split_range(
        self,
        max_base_m: int = -1,
        max_base_n: int = -1,
        max_base_k: int = -1,
        min_base_m: int = -1,
        min_base_n: int = -1,
        min_base_k: int = -1,
    ) -> None:
        """Bound the base block; the vendor's library takes this and does not use it."""
        tops, lows = (max_base_m, max_base_n, max_base_k), (min_base_m, min_base_n, min_base_k)
        self._requested.bound("set_split_range", _BASE, tops, lows)

    def set_traverse(self, traverse: str) -> None:
        """Move on along M first (``FIRSTM``) or along N first (``FIRSTN``)."""
        orders = ("FIRSTM", "FIRSTN")
        self._requested.fixed["iterateOrder"] = orders.index(
            word("set_traverse.traverse", traverse, orders)
        )

    def set_buffer_space(
        self, l1_size: int = -1, l0c_size: int = -1, ub_size: int = -1, bt_size: int = -1
    ) -> None:
        """Bound what a tiling uses of L1, L0C, UB and BiasTable, bytes; -1 is what there is."""
        sizes = {"l1_size": l1_size, "l0c_size": l0c_size, "ub_size": ub_size, "bt_size": bt_size}
        self._requested.narrow("set_buffer_space", self._requested.budget, sizes.items())

    def set_matmul_config_params(
        self,
        mm_config_type: int | MatmulConfigParams = 1,
        enable_l1_cache_ub: bool = False,
        schedule_type: str = "INNER_PRODUCT",
        traverse: str = "NOSET",
        en_vec_nd2nz: bool = False,
    ) -> None:
        """Choose the template: 0 Norm, 1 MDL. NOSET leaves an earlier `set_traverse` as it is.

        A `MatmulConfigParams` holds all five.
        """
        caller = "set_matmul_config_params"
        if isinstance(mm_config_type, MatmulConfigParams):
            self.set_matmul_config_params(*mm_config_type)
            return
        if mm_config_type not in {0, 1}:
            raise refuse(f"{caller}.mm_config_type", "be 0 or 1", repr(mm_config_type))
        self._requested.keys["template"] = ("NORM", "MDL")[mm_config_type]
        if enable_l1_cache_ub:
            why = "cubecore's kernels keep no blocks of UB in L1"
            raise refuse(f"{caller}.enable_l1_cache_ub", "be false", "true", why)
        if schedule_type != "INNER_PRODUCT":
            why = "cubecore's kernels load along K only"
            raise refuse(f"{caller}.schedule_type", "be INNER_PRODUCT", repr(schedule_type), why)
        if en_vec_nd2nz:
            why = "layouts change on the way, or in UB on chips that cannot"
            raise refuse(f"{caller}.en_vec_nd2nz", "be false", "true", why)
        if traverse != "NOSET":
            self.set_traverse(traverse)

    def set_double_buffer(
        self,
        a: bool,
        b: bool,
        c: bool,
        bias: bool,
        trans_nd2nz: bool = True,
        trans_nz2nd: bool = True,
    ) -> None:
        """Refuse: the vendor reserves this call and does not say which buffers it means."""
        given = ", ".join(str(x).lower() for x in (a, b, c, bias, trans_nd2nz, trans_nz2nd))
        why = "the vendor reserves it without saying which buffers; dbL0A to dbL0C are planned"
        raise unable("set_double_buffer", f"set_double_buffer({given}) is not supported", why)

    # --- answers

    @property
    def problem(self) -> Problem:
        """The matmul that was set, as `cubecore.plan` takes it.

        Raises
        ------
        RequestError
            If a setting is missing, or two settings contradict each other.
        """
        return self._requested.problem(self._chip, self._cores())

    @property
    def solution(self) -> Solution:
        """Return the planner's answer to the last `get_tiling`."""
        if self._solution is None:
            raise unable("solution", "solution: no tiling yet; call get_tiling first")
        return self._solution

    def get_tiling(self) -> TCubeTiling:
        """Return the best tiling found for what was set.

        M, N, Ka and Kb are the original sizes; the rest is for the shape that is computed.

        Raises
        ------
        RequestError
            If the settings do not describe a matmul, or the chip or cubecore does not support it.
        NoLegalTilingError
            If no tiling satisfies the rules and the settings; a `ConflictError` where the
            constraints that exclude each other are known.
        """
        problem, asked = self.problem, self._requested
        wanted = replace(problem, fix=asked.wanted())
        chip = asked.budgeted(self._chip)
        validate(wanted, chip)
        try:
            self._solution, _ = timed_plan(wanted, chip, ALTERNATIVES)
        except InfeasibleError as error:
            raise explained(error, asked.narrowing(wanted, self._chip)) from None
        m, n, ka, kb = asked.org or (problem.m, problem.n, problem.k, problem.k)
        whole = {"M": m, "N": n, "Ka": ka, "Kb": kb}
        self._answer = replace(self._solution.best.tiling, **whole, **asked.fields)
        return self._answer

    def enable_l1_bank_conflict_optimise(self) -> bool:
        """Refuse: on what the vendor's answer depends is not documented."""
        why = "the vendor does not say what its answer depends on"
        name = "enable_l1_bank_conflict_optimise"
        raise unable(name, f"{name} is not supported", why)

    def get_base_m(self) -> int:
        """Return baseM of the last `get_tiling`."""
        return self._last("get_base_m").baseM

    def get_base_n(self) -> int:
        """Return baseN of the last `get_tiling`."""
        return self._last("get_base_n").baseN

    def get_base_k(self) -> int:
        """Return baseK of the last `get_tiling`."""
        return self._last("get_base_k").baseK

    def _cores(self) -> Json:
        return {"cores": 1}

    def _last(self, caller: str) -> TCubeTiling:
        if self._answer is None:
            raise unable(caller, f"{caller}: no tiling yet; call get_tiling first")
        return self._answer


class MatmulApiTiling(MatmulApiTilingBase):
    """A tiling for one core."""


class ManyCoreTilingBase(MatmulApiTilingBase):
    """The setters common to the two classes for several cores: the division of C and of K."""

    def __init__(self, target: str | Chip | None = None, *, launch: str = "cube") -> None:
        """Start with nothing set and one core."""
        super().__init__(target, launch=launch)
        self._dim = 1

    def set_dim(self, dim: int) -> None:
        """Say how many cores there are, at most; more than the chip has are capped (D12)."""
        self._dim = number("set_dim.dim", dim)

    def set_single_shape(
        self, single_m_in: int = -1, single_n_in: int = -1, single_k_in: int = -1
    ) -> None:
        """Fix the share of a core; usedCoreNum is the number of shares."""
        values = zip(_SINGLE, (single_m_in, single_n_in, single_k_in), strict=True)
        self._requested.narrow("set_single_shape", self._requested.fixed, values)

    def set_single_range(
        self,
        max_m: int = -1,
        max_n: int = -1,
        max_k: int = -1,
        min_m: int = -1,
        min_n: int = -1,
        min_k: int = -1,
    ) -> None:
        """Bound the share of a core; the vendor's library takes this and does not use it."""
        tops, lows = (max_m, max_n, max_k), (min_m, min_n, min_k)
        self._requested.bound("set_single_range", _SINGLE, tops, lows)

    def set_align_split(self, align_m: int, align_n: int, align_k: int) -> None:
        """Cut shares at multiples; -1 or 0 leaves an axis free, and one that is not cut is whole.

        The vendor's library uses this for N only, and only with B in TSCM.
        """
        values = (-1 if value == 0 else value for value in (align_m, align_n, align_k))
        pairs = zip(_SINGLE, values, strict=True)
        self._requested.narrow("set_align_split", self._requested.multiples, pairs)

    def enable_multi_core_split_k(self, flag: bool) -> None:
        """Let cores divide K; the kernel then adds up in C, which must start as zeros."""
        self._requested.keys["split_k"] = bool(flag)

    def set_split_k(self, flag: bool) -> None:
        """Let cores divide K: `enable_multi_core_split_k` by its older name."""
        self.enable_multi_core_split_k(flag)

    def get_single_shape(self) -> SingleShape:
        """Return singleCoreM, singleCoreN and singleCoreK of the last `get_tiling`."""
        t = self._last("get_single_shape")
        return SingleShape(t.singleCoreM, t.singleCoreN, t.singleCoreK)

    def _cores(self) -> Json:
        return {"cores": self._dim}

    def _core_num(self) -> CoreNum:
        t = self._last("get_core_num")
        m, n, _ = self._requested.extents()
        return CoreNum(t.usedCoreNum, ceil_div(m, t.singleCoreM), ceil_div(n, t.singleCoreN))


class MultiCoreMatmulTiling(ManyCoreTilingBase):
    """A tiling for several cores, which divide C (and K, where that is enabled)."""

    def get_core_num(self) -> CoreNum:
        """Return the cores of the last `get_tiling`.

        Returns
        -------
        CoreNum
            All cores that compute, those along M and those along N.
        """
        return self._core_num()


class BatchMatmulTiling(ManyCoreTilingBase):
    """A tiling for a batch of matmuls of one shape."""

    def get_core_num(self) -> BatchCoreNum:
        """Return the cores of the last `get_tiling`.

        Returns
        -------
        BatchCoreNum
            The cores of one matrix, those along M and N, and the matrices computed at a time.
        """
        cores = self._core_num()
        return BatchCoreNum(*cores, batch_groups(self.problem, self._chip, cores.dim), 1)
