"""What the templates, launches and options of the matmul kernel do beside giving the product."""

import os

import numpy as np
import pytest

from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.scale_registers import SetAtomic
from cubecore.isa.mte.copies import CopyGmToCbuf, CopyGmToCbufMultiNd2Nz
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.checker import check_tiling
from harness import A2, issued, listing, make_tiling, tensor_of
from kernels.cases import (
    FORMATS,
    KINDS,
    LAUNCHES,
    QUANTISED,
    assert_right,
    draw_extent,
    draw_operands,
    draw_tiling,
    kind_id,
    make,
)

HALF = {"a": "float16", "trans_a": False, "trans_b": True, "bias": None, "c": "float32"}
BLOCKS = {"baseM": 32, "baseN": 32, "baseK": 32}
DEPTHS = {"stepKa": 4, "stepKb": 4, "depthA1": 8, "depthB1": 8}


def loads(problem, tiling, core=0):
    """Return (tensor, elements moved) of every transfer to L1 on a core, in program order."""
    launch = matmul_launch(problem, tiling, A2)
    found = []
    for template, (_, source) in issued(launch, CopyGmToCbufMultiNd2Nz, core):
        found.append((tensor_of(launch, source)[0], template.n_value * template.d_value))
    return found


# --- NORM


def test_norm_moves_one_base_block_at_a_time_mdl_a_chunk():
    problem = make(HALF, 64, 64, 256)
    tiling = make_tiling(problem, **BLOCKS, **DEPTHS)
    assert {size for _, size in loads(problem, tiling)} == {32 * 128}
    norm = make(HALF, 64, 64, 256, template="NORM")
    assert {size for _, size in loads(norm, tiling)} == {32 * 32}


@pytest.mark.parametrize("depth", [1, 2, 8, 16])
def test_norm_loads_what_stays_in_l1_once(depth):
    """All of K in L1: 8 blocks of each of 2 rows of A; B's are loaded for every row of tiles."""
    problem = make(HALF, 64, 64, 256, template="NORM")
    stays = depth >= 8
    fields = {"stepKa": 8 if stays else 1, "depthA1": depth, "depthB1": 1, "stepKb": 1}
    tiling = make_tiling(problem, **BLOCKS, **fields, iterateOrder=1)
    found = [name for name, _ in loads(problem, tiling)]
    assert found.count("a") == (16 if stays else 32)
    assert found.count("b") == 32
    assert_right(problem, tiling, draw_operands(np.random.default_rng(depth), problem))


def test_norm_asks_for_the_next_block_before_it_uses_one():
    problem = make(HALF, 32, 32, 128, template="NORM")
    tiling = make_tiling(problem, **BLOCKS, depthA1=2, depthB1=2, stepKa=1, stepKb=1)
    order = [
        type(template)
        for template, _ in listing(matmul_launch(problem, tiling, A2))
        if isinstance(template, CopyGmToCbufMultiNd2Nz | Mad)
    ]
    assert order[:5] == [CopyGmToCbufMultiNd2Nz] * 4 + [Mad]


# --- IBSHARE


def shared_loads(template, kept):
    """Return the transfers of B (or A) on an AI Core with two clients that have it in common."""
    problem = make(HALF, 64, 64, 128, template=template, launch="mix")
    axis = {"b": {"singleCoreM": 32}, "a": {"singleCoreN": 32}}[kept]
    tiling = make_tiling(problem, **BLOCKS, **DEPTHS, stepM=1, stepN=1, **axis, usedCoreNum=2)
    whole = {"a": ("stepM", "depthA1"), "b": ("stepN", "depthB1")}[kept]
    tiling = make_tiling(
        problem, **BLOCKS, **DEPTHS | {whole[1]: 8}, **{whole[0]: 2}, **axis, usedCoreNum=2
    )
    assert check_tiling(tiling, problem, A2).legal
    assert_right(problem, tiling, draw_operands(np.random.default_rng(3), problem))
    return [name for name, _ in loads(problem, tiling)].count(kept)


@pytest.mark.parametrize("kept", ["a", "b"])
def test_ibshare_brings_what_two_clients_share_to_l1_once(kept):
    assert shared_loads("NORM", kept) == 2 * shared_loads("IBSHARE", kept) == 16


# --- unit flag


@pytest.mark.parametrize("template", ["MDL", "NORM"])
@pytest.mark.parametrize("k", [20, 100])
def test_the_unit_flag_stands_for_the_flags_between_m_and_fix(template, k):
    problem = make(HALF, 40, 40, k, template=template, unit_flag=True)
    tiling = make_tiling(problem, **BLOCKS, depthA1=1, depthB1=1)
    launch = matmul_launch(problem, tiling, A2)
    for template_, _ in listing(launch):
        if isinstance(template_, SetFlag | WaitFlag):
            assert {template_.src, template_.dst} != {"M", "FIX"}
    flags = [mad.unit_flag for mad, _ in issued(launch, Mad)]
    each = -(-k // 32)
    assert flags == ([2] * (each - 1) + [3]) * 4
    assert {store.unit_flag for store, _ in issued(launch, CopyMatrixCcToGm)} == {3}


@pytest.mark.parametrize(("template", "asked"), [("MDL", False), ("NORM", True), ("IBSHARE", True)])
def test_the_unit_flag_is_the_templates_unless_asked(template, asked):
    assert Problem(m=1, n=1, k=1, template=template).shares_unit_flag is asked
    for flag in (True, False):
        problem = Problem(m=1, n=1, k=1, template=template, unit_flag=flag)
        assert problem.shares_unit_flag is flag


# --- split K, batch, formats


def test_a_split_k_adds_its_slices_up_and_only_the_first_brings_the_bias():
    problem = make(KINDS[-1], 16, 32, 96, split_k=True)
    tiling = make_tiling(problem, baseK=32, singleCoreK=32)
    launch = matmul_launch(problem, tiling, A2)
    assert [core.core for core in launch.cores] == [0, 1, 2]
    (c,) = (tensor for tensor in launch.tensors if tensor.output)
    assert c.zeroed
    for core in range(3):
        (setting, _), (reset, _) = issued(launch, SetAtomic, core)
        assert (setting.operation, setting.dtype.name, reset.operation) == ("add", "int32", "none")
        starts = [mad.starts_from_bias for mad, _ in issued(launch, Mad, core)]
        assert any(starts) == (core == 0)
    assert_right(problem, tiling, draw_operands(np.random.default_rng(0), problem))


@pytest.mark.parametrize("slices", [2, 3])
def test_two_slices_of_a_split_k_on_one_ai_core_bring_the_bias_once(slices):
    problem = make(KINDS[-1], 16, 32, 32 * slices, split_k=True, launch="mix")
    tiling = make_tiling(problem, baseK=32, singleCoreK=32)
    launch = matmul_launch(problem, tiling, A2)
    starts = [
        mad.starts_from_bias for core in launch.cores for mad, _ in issued(launch, Mad, core.core)
    ]
    assert starts.count(True) == 2  # two tiles of the first slice
    assert_right(problem, tiling, draw_operands(np.random.default_rng(slices), problem))


def test_an_nz_operand_comes_in_bursts_of_its_pieces():
    problem = make(HALF, 64, 48, 64, format_a="NZ")
    tiling = make_tiling(problem, **BLOCKS, stepKa=2, depthA1=2, stepKb=2, depthB1=2)
    launch = matmul_launch(problem, tiling, A2)
    bursts = {(t.n_burst, t.len_burst, t.src_gap) for t, _ in issued(launch, CopyGmToCbuf)}
    assert bursts == {(4, 32, 32)}


def test_a_batch_is_computed_matrix_after_matrix_without_waiting_in_between():
    problem = make(HALF, 32, 32, 64, batch=50)
    tiling = make_tiling(problem, **BLOCKS, stepKa=2, stepKb=2)
    launch = matmul_launch(problem, tiling, A2)
    assert len(launch.cores) == 20
    counts = [len(issued(launch, CopyMatrixCcToGm, core)) for core in range(20)]
    assert counts == [3] * 10 + [2] * 10
    flags = [t for t, _ in listing(launch) if isinstance(t, WaitFlag)]
    taken = [t for t in flags if (t.src, t.dst) == ("FIX", "M")]
    assert len(taken) == 3 + 1  # once for each matrix, once at the end


# --- everything with everything


def cross(kinds):
    return [(kind, formats, launch) for kind in kinds for formats in FORMATS for launch in LAUNCHES]


def check_cross(kind, formats, launch, rng):
    if kind["a"] == "int4" and kind.get("quant"):
        kind = {**kind, "trans_a": False, "trans_b": bool(rng.integers(2))}
    elif kind.get("quant"):
        kind = {**kind, "trans_a": bool(rng.integers(2)), "trans_b": bool(rng.integers(2))}
    shape = (draw_extent(rng, 100) for _ in range(3))
    problem = make(kind, *shape, **formats, **launch)
    tiling = draw_tiling(rng, problem)
    assert_right(problem, tiling, draw_operands(rng, problem))


def id_of(kind):
    return f"{kind['a']}-{kind['quant']}" if "quant" in kind else kind_id(kind)


@pytest.mark.parametrize("kind", [KINDS[i] for i in range(0, len(KINDS), 7)], ids=id_of)
@pytest.mark.thinned(3)
def test_a_kind_in_some_formats_templates_and_launches(kind):
    rng = np.random.default_rng(7)
    every = cross([kind])
    for number in rng.choice(len(every), 6, replace=False):
        check_cross(*every[number], rng)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", [*KINDS, *QUANTISED], ids=id_of)
def test_every_kind_in_every_format_template_and_launch(kind):
    seed = int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    for case in cross([kind]):
        check_cross(*case, rng)
