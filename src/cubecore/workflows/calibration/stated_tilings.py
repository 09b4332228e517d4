"""Points of matmuls that state their tiling, as cases; what they leave open is filled in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import lcm

from cubecore.aliases import Json, JsonMapping
from cubecore.chips import Chip
from cubecore.isa.program.launch import Launch
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.kernels.operators.products.cleared import cleared
from cubecore.tiling.model.core_grid import CoreBlock
from cubecore.tiling.model.mx_type_para import MxTypePara
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.units import FRACTAL_ROWS, align_up, ceil_div
from cubecore.workflows.calibration.cases import CalibrationCase, Notes, has_automatic_flags
from cubecore.workflows.calibration.columns import AIV_PER_AIC
from cubecore.workflows.calibration.measured_points import Point

_STATES = ("baseM", "L0", "L1tileB", "scheduler")
_TELLING = ("baseM", "L0", "L1tileB")
_BY_HAND = ("L0", "L1tileB", "scheduler")
"""The columns that only kernels written by hand on the basic API state."""


@dataclass(frozen=True, slots=True)
class Stated:
    """The tiling that a point states: elements, base blocks, and rounds over M.

    `scale_factor` is how much more of the scales along K a load brings than of A and B, `bands` how
    many columns of blocks are dealt together; None deals row by row. `l2_tiles` are the rows and
    columns of blocks of a part that L2 holds, which is dealt along its diagonals; `single_k` a
    core's share of K where slices add up.
    """

    base: tuple[int, int, int]
    step_k: tuple[int, int]
    depth: tuple[int, int]
    step: tuple[int, int] = (1, 1)
    single: tuple[int, int] | None = None
    rounds: int = 1
    scale_factor: int = 1
    splits_tail: bool = False
    bands: int | None = None
    keeps_a: bool = False
    l2_tiles: tuple[int, int] | None = None
    single_k: int | None = None


def has_tiling(point: Point) -> bool:
    """True if a point states base blocks."""
    return any(name in point.tiling for name in _STATES)


def stated_case(point: Point, chip: Chip, problem: Problem, notes: Notes) -> CalibrationCase:
    """Return the case of a matmul whose tiling is the point's.

    Raises
    ------
    RequestError
        If the kernel does not support the tiling.
    """
    api = _api(point, notes)
    template = _template(point, api, notes)
    unit_flag = point.tiling.get("unitFlag") or None
    problem = replace(problem, template=template, unit_flag=unit_flag, **_cores(point, template))
    if point.tiling.get("singleK", problem.k) < problem.k:
        problem = replace(problem, split_k=True)
    stated = _stated(point, chip, problem, notes)
    known = any(name in point.tiling for name in _TELLING) and (
        _is_by_hand(point) or "baseK" in point.tiling
    )
    tiling, blocks = _laid_out(chip, problem, stated, notes)
    step = _step(point, api, template)
    options = {"preload": _preloads(point, problem, stated, step, notes)}
    if point.tiling.get("epilogue") == "vector cores":
        notes.add("fixpipe leaves C to two vector cores, which write half of a tile each")
        options["by_vector_cores"] = True
    options["drains_l0"] = has_automatic_flags(point, notes)
    clears = bool(point.tiling.get("clears_c"))
    if clears:
        notes.add("vector cores clear C before")

    def launch() -> Launch:
        product = matmul_launch(problem, tiling, chip, step, blocks, **options)
        return cleared(product) if clears else product

    return CalibrationCase(
        chip,
        launch,
        "doubted" if point.doubt else "known" if known else "library",
        tiling_known=known,
        assumed=(*notes.done(), *((point.doubt,) if point.doubt else ())),
    )


def _is_by_hand(point: Point) -> bool:
    """True if a point states what only kernels written by hand have."""
    return any(name in point.tiling for name in _BY_HAND)


def _api(point: Point, notes: Notes) -> str:
    """Return what the kernel is written on."""
    if point.api:
        return point.api
    api = "basic" if _is_by_hand(point) else "matmul"
    notes.add("written on the basic API" if api == "basic" else "written on the Matmul API")
    return api


def _template(point: Point, api: str, notes: Notes) -> str:
    """Return the kernel template."""
    if _shares_both(point):
        notes.add("one client computes for both, and A and B come to L1 once")
        return "MDL"
    name: str = point.tiling.get("template") or ""
    if not name:
        if api != "basic":
            notes.add("kernel template MDL")
        return "MDL"
    if name == "NORM" and point.tiling.get("depthA1", 1) > 1:
        notes.add("NORM asks for a block when it is needed, whatever the depth")
    return name


def _shares_both(point: Point) -> bool:
    """True if the clients of a core share A and B, all of which lie in L1 (IBSHARE of both)."""
    return point.tiling.get("shared") == "AB"


def _step(point: Point, api: str, template: str) -> str:
    """Return whose scalar cost a step has."""
    if api == "basic":
        return "BASIC"
    if point.tiling.get("constant_tiling"):
        return "CONSTANT"
    return "MDL" if template == "MDL" else "NORM"


def _preloads(point: Point, problem: Problem, stated: Stated, step: str, notes: Notes) -> bool:
    """True if a chunk with all of K is loaded ahead: by hand it is, in the API if asked for."""
    whole = max(stated.step_k) * stated.base[2] >= problem.k
    if problem.template != "MDL" or step == "BASIC" or "preload" in point.tiling or not whole:
        return True
    notes.add("the Matmul API loads a chunk with all of K when it is needed")
    return False


def _cores(point: Point, template: str) -> Json:
    """Return the problem's launch and cores."""
    clients = point.tiling.get("usedCoreNum")
    if clients or template == "IBSHARE" or point.tiling.get("mode") == "MIX":
        return {"launch": "mix", "cores": clients or AIV_PER_AIC * (point.cores or 0) or None}
    return {"cores": point.cores}


def _stated(point: Point, chip: Chip, problem: Problem, notes: Notes) -> Stated:
    tiling = point.tiling
    if "L1tileB" in tiling:
        columns = ceil_div(problem.n, tiling["blocks"])
        return Stated((16, columns, 128), (1, 1), (2, 2), single=(16, columns))
    if "scheduler" in tiling and "L0" not in tiling:
        tiling = {**tiling, **_default_blocks(chip, problem, notes)}
    if "L0" in tiling:
        base = tuple(int(x) for x in tiling["L0"].split(","))
        in_l1 = tuple(int(x) for x in tiling["L1"].split(","))
        steps = (ceil_div(in_l1[2], base[2]),) * 2
        depth = (2 * steps[0], 2 * steps[1])
        blocks = (base[0], base[1], base[2])
        adaptive = tiling.get("scheduler") == "ASWT"
        bands = tiling.get("swizzleOffset")
        share = (in_l1[0], in_l1[1])
        keeps_a = tiling.get("full_load") == "A"
        if keeps_a:
            whole = ceil_div(problem.k, base[2])
            steps, depth = (whole, steps[1]), (whole, depth[1])
        return Stated(
            blocks,
            steps,
            depth,
            single=share,
            splits_tail=adaptive,
            bands=bands,
            keeps_a=keeps_a,
        )
    base_k = tiling.get("baseK") or _base_k(chip, problem, tiling, notes)
    blocks = (tiling["baseM"], tiling["baseN"], base_k)
    steps = _steps(point, chip, problem, blocks, notes)
    depth = _depth(point, problem, *steps, notes)
    step = (tiling.get("stepM", 1), tiling.get("stepN", 1))
    if _shares_both(point):
        step = (ceil_div(problem.m, blocks[0]), ceil_div(problem.n, blocks[1]))
    depth = (depth[0] * step[0], depth[1] * step[1])
    single, rounds = _single(point, problem, blocks, notes)
    l2_tiles = tiling.get("l2_tiles")
    return Stated(
        blocks,
        steps,
        depth,
        step,
        single,
        rounds,
        tiling.get("scaleFactor", 1),
        l2_tiles=(l2_tiles[0], l2_tiles[1]) if l2_tiles else None,
        single_k=tiling.get("singleK"),
    )


def _base_k(chip: Chip, problem: Problem, tiling: JsonMapping, notes: Notes) -> int:
    """Return the most of K that L0A and L0B hold twice, in whole fractals."""
    size = problem.a_type.bytes_of
    rooms = ((chip.l0a_bytes, tiling["baseM"]), (chip.l0b_bytes, tiling["baseN"]))
    room = min(int(room // 2 // size(extent)) for room, extent in rooms)
    base_k: int = min(room // FRACTAL_ROWS * FRACTAL_ROWS, tiling.get("singleK", problem.k))
    notes.add(f"baseK {base_k}: what L0 holds twice")
    return base_k


def _default_blocks(chip: Chip, problem: Problem, notes: Notes) -> Json:
    """Return the blocks that CATLASS's examples have: as wide as fills L0C, 512 B of K in L1."""
    room = chip.l0c_bytes // problem.accumulator_type.size_bytes
    rows = 256 if room >= 256 * 256 else 128
    k_in_l0 = chip.l0a_bytes // 2 // int(problem.a_type.bytes_of(256))
    in_l1 = 2 * k_in_l0 if rows == 256 else 4 * k_in_l0
    notes.add(f"blocks of {rows} x 256, {k_in_l0} of K in L0 and {in_l1} in L1, as in the examples")
    return {"L1": f"{rows},256,{in_l1}", "L0": f"{rows},256,{k_in_l0}"}


def _steps(
    point: Point, chip: Chip, problem: Problem, base: Sequence[int], notes: Notes
) -> tuple[int, int]:
    """Return stepKa and stepKb: as stated, one for NORM, or what two buffers leave in L1."""
    tiling = point.tiling
    if problem.template == "NORM":
        return 1, 1
    k_blocks = ceil_div(problem.k, base[2])
    if _shares_both(point):
        return k_blocks, k_blocks
    size = problem.a_type.bytes_of
    room = [chip.l1_bytes // 4 // size(rows * base[2]) for rows in base[:2]]
    steps = tuple(max(1, min(r, k_blocks, 8)) for r in room)
    if "stepKa" in tiling and "stepKb" in tiling:
        return tiling["stepKa"], tiling["stepKb"]
    if "stepKa" in tiling:
        notes.add(f"stepKb {steps[1]}: what fills L1")
        return tiling["stepKa"], steps[1]
    notes.add(f"stepKa {steps[0]}, stepKb {steps[1]}: what fills L1")
    return steps[0], steps[1]


def _depth(
    point: Point, problem: Problem, step_ka: int, step_kb: int, notes: Notes
) -> tuple[int, int]:
    """Return depthA1 and depthB1 of one row and column of base blocks."""
    tiling = point.tiling
    norm = problem.template == "NORM"
    if norm and problem.launch == "mix":
        notes.add("the loads of one client run beside the product of the other: two buffers")
        return 2, 2
    if norm or _shares_both(point):
        if norm and "depthA1" not in tiling:
            notes.add("one base block in L1")
        return step_ka, step_kb
    if "depthA1" not in tiling and "dbL1" not in tiling:
        notes.add("two buffers in L1")
    return tiling.get("depthA1", 2 * step_ka), tiling.get("depthB1", 2 * step_kb)


def _single(
    point: Point, problem: Problem, base: Sequence[int], notes: Notes
) -> tuple[tuple[int, int] | None, int]:
    """Return the share of a core, if it is stated, and how many rounds split M before."""
    tiling = point.tiling
    rounds, single = tiling.get("rounds", 1), None
    if "singleM" in tiling:
        single = (tiling["singleM"], tiling.get("singleN", problem.n))
    elif rounds > 1:
        part = replace(problem, m=ceil_div(problem.m, rounds))
        single = _split(part, point.cores or 1, base)
        notes.add(f"singleCoreM {single[0]}, singleCoreN {single[1]} of each round")
    return single, rounds


# --- the tiling as a struct


def _laid_out(
    chip: Chip, problem: Problem, stated: Stated, notes: Notes
) -> tuple[TCubeTiling, list[tuple[CoreBlock, ...]] | None]:
    """Return the tiling, and the blocks of each core where they are no plain grid."""
    base_m, base_n, base_k = stated.base
    cores = problem.core_count(chip)
    single = stated.single
    if single is None:
        single = _split(problem, cores, stated.base)
        notes.add(f"singleCoreM {single[0]}, singleCoreN {single[1]}")
    single_k = stated.single_k or problem.k
    m_blocks, n_blocks = ceil_div(problem.m, single[0]), ceil_div(problem.n, single[1])
    k_blocks = ceil_div(problem.k, single_k)
    size = problem.a_type.bytes_of
    fields = dict.fromkeys(FIELDS, 0) | {
        "usedCoreNum": min(m_blocks * n_blocks * k_blocks, cores),
        "M": problem.m,
        "N": problem.n,
        "Ka": problem.k,
        "Kb": problem.k,
        "singleCoreM": single[0],
        "singleCoreN": single[1],
        "singleCoreK": single_k,
        "baseM": base_m,
        "baseN": base_n,
        "baseK": base_k,
        "depthA1": stated.depth[0],
        "depthB1": stated.depth[1],
        "stepM": stated.step[0],
        "stepN": stated.step[1],
        "stepKa": stated.step_k[0],
        "stepKb": stated.step_k[1],
        "dbL0A": 1 + (2 * size(base_m * base_k) <= chip.l0a_bytes),
        "dbL0B": 1 + (2 * size(base_n * base_k) <= chip.l0b_bytes),
        "dbL0C": 1 + (2 * base_m * base_n * problem.accumulator_type.size_bytes <= chip.l0c_bytes),
    }
    if problem.mx:
        fields["mxTypePara"] = MxTypePara(*(stated.scale_factor,) * 2).pack()
    tiling = TCubeTiling(**fields)
    if stated.splits_tail and m_blocks * n_blocks % cores:
        notes.add("the last round's blocks are split over all cores")
    elif stated.rounds == 1 and m_blocks * n_blocks <= cores:
        return tiling, None
    if stated.rounds > 1:
        notes.add(f"{stated.rounds} rounds over M, each split over all cores")
    elif stated.keeps_a:
        notes.add("blocks go to the cores in stretches, and A stays in L1 along a row")
    elif stated.l2_tiles:
        notes.add("blocks go to the cores in turn along the diagonals of parts that L2 holds")
    else:
        notes.add("blocks go to the cores in turn")
    return tiling, _dealt(problem, *single, cores, stated)


def _dealt(
    problem: Problem, single_m: int, single_n: int, cores: int, stated: Stated
) -> list[tuple[CoreBlock, ...]]:
    """Return the blocks of each core: block i of a round goes to core i mod cores."""
    per_round = ceil_div(ceil_div(problem.m, stated.rounds), single_m) * single_m
    dealt: list[list[CoreBlock]] = [[] for _ in range(cores)]
    for first in range(0, problem.m, per_round):
        rows = range(first, min(first + per_round, problem.m), single_m)
        columns = range(0, problem.n, single_n)
        order = (
            in_parts(rows, columns, *stated.l2_tiles)
            if stated.l2_tiles
            else in_bands(rows, columns, stated.bands)
        )
        grid = [
            CoreBlock(
                core=0,
                m0=m0,
                n0=n0,
                m_len=min(single_m, problem.m - m0),
                n_len=min(single_n, problem.n - n0),
                k_len=problem.k,
            )
            for m0, n0 in order
        ]
        if stated.splits_tail:
            full = len(grid) // cores * cores
            tail = grid[full:]
            grid = grid[:full] + [p for b in tail for p in _parts(b, cores // len(tail))]
        each = ceil_div(len(grid), cores)
        for index, block in enumerate(grid):
            core = index // each if stated.keeps_a else index % cores
            dealt[core].append(replace(block, core=core))
    if stated.l2_tiles:
        dealt = [_in_order(blocks) for blocks in dealt]
    if stated.keeps_a or stated.l2_tiles:
        dealt = [_joined(blocks) for blocks in dealt]
    return [tuple(blocks) for blocks in dealt if blocks]


def _in_order(blocks: Sequence[CoreBlock]) -> list[CoreBlock]:
    """Return the blocks with those of a row that follow each other from left to right.

    What a core itself has to do is then the same, and takes fewer trees.
    """
    rows = groupby(blocks, key=lambda block: block.m0)
    return [block for _, row in rows for block in sorted(row, key=lambda block: block.n0)]


def _joined(blocks: Sequence[CoreBlock]) -> list[CoreBlock]:
    """Return the blocks with those that lie side by side as one."""
    joined: list[CoreBlock] = []
    for block in blocks:
        last = joined[-1] if joined else None
        if last is not None and (last.m0, last.n0 + last.n_len) == (block.m0, block.n0):
            joined[-1] = replace(last, n_len=last.n_len + block.n_len)
        else:
            joined.append(block)
    return joined


def in_bands(
    rows: Sequence[int], columns: Sequence[int], band: int | None
) -> Iterator[tuple[int, int]]:
    """Yield the (row, column) of blocks in the order in which they are dealt.

    A band of columns row by row, every second one from its last row up (catlass, swizzle<band, 1>:
    the page on tuning says which cores then have how much).
    """
    band = band or len(columns)
    for number, first in enumerate(range(0, len(columns), band)):
        for row in rows if number % 2 == 0 else rows[::-1]:
            for column in columns[first : first + band]:
                yield row, column


def in_parts(
    rows: Sequence[int], columns: Sequence[int], part_rows: int, part_columns: int
) -> Iterator[tuple[int, int]]:
    """Yield the (row, column) of blocks dealt part by part, each part along its diagonals.

    So blocks that are computed at a time share few rows and columns (vendor's page on splitting
    for L2).
    """
    for top in range(0, len(rows), part_rows):
        for left in range(0, len(columns), part_columns):
            high, wide = rows[top : top + part_rows], columns[left : left + part_columns]
            around = lcm(len(high), len(wide))
            for index in range(len(high) * len(wide)):
                yield high[index % len(high)], wide[(index + index // around) % len(wide)]


def _parts(block: CoreBlock, most: int) -> list[CoreBlock]:
    """Return a block in at most so many parts of whole fractals, the largest as small as can be."""
    sizes = []
    for m_parts in range(1, most + 1):
        rows = align_up(ceil_div(block.m_len, m_parts), FRACTAL_ROWS)
        columns = align_up(ceil_div(block.n_len, most // m_parts), FRACTAL_ROWS)
        sizes.append((rows * columns, rows + columns, rows, columns))
    _, _, rows, columns = min(sizes)
    return [
        replace(
            block,
            m0=block.m0 + m,
            n0=block.n0 + n,
            m_len=min(rows, block.m_len - m),
            n_len=min(columns, block.n_len - n),
        )
        for m in range(0, block.m_len, rows)
        for n in range(0, block.n_len, columns)
    ]


def _split(problem: Problem, cores: int, base: Sequence[int]) -> tuple[int, int]:
    """Return the share of a core, whole base blocks: the smallest largest share, near a square."""
    m_tiles, n_tiles = ceil_div(problem.m, base[0]), ceil_div(problem.n, base[1])
    shares = []
    for m_blocks in range(1, min(cores, m_tiles) + 1):
        n_blocks = min(cores // m_blocks, n_tiles)
        rows, columns = ceil_div(m_tiles, m_blocks) * base[0], ceil_div(n_tiles, n_blocks) * base[1]
        shares.append((rows * columns, rows + columns, rows, columns))
    return min(shares)[2:]
