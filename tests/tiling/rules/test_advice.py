from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecore.chips import chip
from cubecore.citations import TITLES
from cubecore.tiling.model.core_grid import core_blocks, problem_blocks
from cubecore.tiling.rules.advice import ROWS, advise, advise_plan
from cubecore.tiling.rules.checker import check_tiling
from cubecore.tiling.rules.model import RuleCase
from cubecore.units import ceil_div
from tiling.cases import B3, problem, tiling
from tiling.reference import answered


@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 90), st.integers(1, 90))
def test_blocks_cover_c_once(m, n, single_m, single_n):
    p = problem(m=m, n=n)
    grid = (ceil_div(m, single_m), ceil_div(n, single_n))
    t = tiling(p, singleCoreM=single_m, singleCoreN=single_n, usedCoreNum=grid[0] * grid[1])
    blocks = core_blocks(t)
    assert [b.core for b in blocks] == list(range(grid[0] * grid[1]))
    covered = {
        (i, j)
        for b in blocks
        for i in range(b.m0, b.m0 + b.m_len)
        for j in range(b.n0, b.n0 + b.n_len)
    }
    assert len(covered) == sum(b.m_len * b.n_len for b in blocks) == m * n


def test_block_i_is_i_mod_m_blocks_and_i_div_m_blocks():
    p = problem(m=300, n=500)
    t = tiling(p, singleCoreM=128, singleCoreN=256, usedCoreNum=6)
    every_k = {"k0": 0, "k_len": p.k, "batch0": 0, "batches": 1, "batch_step": 1}
    assert [b.to_json() for b in core_blocks(t)][:5] == [
        {"core": 0, "m0": 0, "n0": 0, "m_len": 128, "n_len": 256} | every_k,
        {"core": 1, "m0": 128, "n0": 0, "m_len": 128, "n_len": 256} | every_k,
        {"core": 2, "m0": 256, "n0": 0, "m_len": 44, "n_len": 256} | every_k,
        {"core": 3, "m0": 0, "n0": 256, "m_len": 128, "n_len": 244} | every_k,
        {"core": 4, "m0": 128, "n0": 256, "m_len": 128, "n_len": 244} | every_k,
    ]
    assert len(core_blocks(replace(t, usedCoreNum=20))) == 6
    assert len(core_blocks(replace(t, usedCoreNum=4))) == 4


def advice(t, p=None, soc=B3, **how):
    return {a.id: a.message for a in check_tiling(t, p or problem(), soc, **how).advice}


def full(**changes):
    """Return a tiling on all 20 cores with the recommended block and double buffers."""
    p = problem(m=640, n=1024, k=4096)
    return p, tiling(p, usedCoreNum=20, singleCoreM=128, singleCoreN=256, **changes)


def test_a_tiling_as_recommended_gets_no_advice():
    p, t = full()
    assert advice(t, p) == {}


@pytest.mark.parametrize(
    ("changes", "name", "message"),
    [
        (
            {"dbL0A": 1},
            "DOUBLE-BUFFER-L0",
            "dbL0A = 1 serialises MTE1 and the Cube: 2 is recommended",
        ),
        (
            {"dbL0B": 1},
            "DOUBLE-BUFFER-L0",
            "dbL0B = 1 serialises MTE1 and the Cube: 2 is recommended",
        ),
        (
            {"depthA1": 4},
            "DOUBLE-BUFFER-A1",
            "depthA1 = 4 is one step, which serialises MTE2 and MTE1: 8 is recommended",
        ),
        (
            {"depthB1": 4},
            "DOUBLE-BUFFER-B1",
            "depthB1 = 4 is one step, which serialises MTE2 and MTE1: 8 is recommended",
        ),
        ({"baseM": 112}, "BASE", "base 112 x 256 x 64 is not the recommended 128 x 256 x 64"),
        ({"baseK": 48}, "BASE", "base 128 x 256 x 48 is not the recommended 128 x 256 x 64"),
    ],
)
def test_departures_from_what_is_recommended(changes, name, message):
    p, t = full(**changes)
    assert advice(t, p) == {name: message}


def test_k_is_loaded_whole_first_where_it_fits():
    p = problem(m=640, n=1024, k=512)
    t = tiling(p, usedCoreNum=20, singleCoreM=128, stepKa=4, depthA1=8, stepKb=4, depthB1=8)
    assert advice(t, p) == {
        "K-FULL-LOAD": "stepKb = 4: all 8 blocks of K fit L1",
    }
    found = check_tiling(t, p, B3).advice
    assert [a.message for a in found] == [
        "stepKa = 4: all 8 blocks of K fit L1",
        "stepKb = 4: all 8 blocks of K fit L1",
    ]
    whole = replace(t, stepKa=8, depthA1=16, stepKb=8, depthB1=8)
    assert "K-FULL-LOAD" not in advice(whole, p)


MN_FITS = "step{0} = 1: all {1} blocks of {0} fit L1 with all of K"


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        # depthA1 16 of 128 x 64 and depthB1 8 of 64 x 256 fill L1 to its last byte.
        ({}, [MN_FITS.format("M", 2)]),
        ({"depthA1": 4}, [MN_FITS.format("M", 2)]),
        ({"stepM": 2, "depthA1": 16}, []),
        ({"stepKa": 2, "depthA1": 4}, []),
        ({"stepKb": 2, "depthB1": 4}, []),
        ({"baseM": 64, "baseN": 128}, [MN_FITS.format("M", 4), MN_FITS.format("N", 2)]),
    ],
)
def test_with_all_of_k_all_of_m_or_n_is_next(changes, texts):
    p = problem(m=512, n=512, k=256, cores=4)
    t = tiling(p, singleCoreM=256, singleCoreN=256, **changes)
    found = check_tiling(t, p, B3)
    assert found.legal
    assert [a.message for a in found.advice if a.id == "MN-FULL-LOAD"] == texts


@pytest.mark.parametrize(("blocks", "depth", "fits"), [(6, 8, False), (6, 4, True), (18, 4, False)])
def test_m_that_does_not_fit_with_all_of_k_is_not_advised(blocks, depth, fits):
    p = problem(m=blocks * 256, n=512, k=256, cores=4)
    t = tiling(p, singleCoreM=blocks * 128, depthA1=depth, depthB1=4)
    found = [a.message for a in check_tiling(t, p, B3).advice if a.id == "MN-FULL-LOAD"]
    assert found == ([MN_FITS.format("M", blocks)] if fits else [])


def test_small_shares_need_no_recommended_base():
    p = problem(m=16, n=5120, k=1024)
    t = tiling(p, usedCoreNum=20, singleCoreM=16, singleCoreN=256, baseM=16)
    assert "BASE" not in advice(t, p)


def test_idle_and_capped_cores():
    assert advice(tiling())["IDLE-CORES"] == "usedCoreNum = 4 leaves 16 cores idle"
    assert "IDLE-CORES" not in advice(tiling(), problem(cores=4))
    assert advice(tiling(), problem(cores=5))["IDLE-CORES"] == "usedCoreNum = 4 leaves 1 core idle"
    found = advice(tiling(), problem(cores=24))
    assert found["CORES-CAPPED"] == "cores = 24 is more than Ascend910B3 has: 20 are used"
    assert "CORES-CAPPED" not in advice(tiling(), problem(cores=20))


def test_long_rows_ask_for_intrinsics_check():
    p = problem(n=65536, trans_a=True)
    want = (
        "N = 65536 is longer than 65535, a stored row of B: enable intrinsicsCheck in MatmulConfig"
    )
    assert advice(tiling(p), p)["INTRINSICS-CHECK"] == want
    assert "INTRINSICS-CHECK" not in advice(tiling(p), p, chip("Ascend950PR_9589"))
    short = problem(n=65535, trans_a=True)
    assert "INTRINSICS-CHECK" not in advice(tiling(short), short)


WRITTEN = {
    "shareMode": (),
    "shareL1Size": (393216, 394240),
    "shareL0CSize": (131072,),
    "shareUbSize": (),
    **dict.fromkeys(("batchM", "batchN", "singleBatchM", "singleBatchN"), (1,)),
}
"""Values that the vendor's library writes on A2, by its recorded answers: nothing, A's and B's
blocks in L1 without and with the bias, L0C's block of C, and batches of 1."""


def reserved(t, p=None, soc=B3, edition="000"):
    """Return the message and source of each piece of advice about a reserved field."""
    found = check_tiling(t, p or problem(), soc, edition).advice
    return [(a.message, a.source) for a in found if a.id == "RESERVED-FIELD"]


@pytest.mark.parametrize("edition", ["000", "001"])
@pytest.mark.parametrize("name", WRITTEN)
def test_reserved_fields_are_left_alone(name, edition):
    p = problem(bias="float32")
    for value in (0, *WRITTEN[name]):
        assert reserved(tiling(p, **{name: value}), p, edition=edition) == []
    for value in (-1, 2, 5, 131073, 393217, 2**31 - 1):
        want = f"{name} = {value} is in a reserved field: leave it as the library wrote it, or 0"
        source = f"{TITLES[edition]}, table 1"
        assert reserved(tiling(p, **{name: value}), p, edition=edition) == [(want, source)]


def test_each_reserved_field_has_its_line():
    t = tiling(**dict.fromkeys(WRITTEN, 7))
    assert [message.split()[0] for message, _ in reserved(t)] == list(WRITTEN)


def test_an_operand_in_tscm_is_none_of_the_librarys_l1():
    p = problem(pos_a="TSCM")
    assert reserved(tiling(p, shareL1Size=262144), p) == []
    assert len(reserved(tiling(p, shareL1Size=393216), p)) == 1


def test_where_layouts_change_in_ub_the_librarys_sizes_have_bounds():
    """From A's and B's blocks in L1, and C's in UB, to the whole memory: or 0."""
    old, t = chip("Ascend310P3"), tiling()
    blocks = 2 * t.baseK * (t.depthA1 * t.baseM + t.depthB1 * t.baseN)
    least = {"shareL1Size": blocks, "shareUbSize": 4 * t.baseM * t.baseN}
    for name, size in (("shareL1Size", old.l1_bytes), ("shareUbSize", old.ub_bytes)):
        fewest = least[name]
        quiet = (0, fewest, fewest + 32, size)
        for value in (*quiet, 1, 5, fewest - 1, size + 1, -1):
            found = [message for message, _ in reserved(tiling(**{name: value}), soc=old)]
            want = (
                f"{name} = {value} is in a reserved field: leave it as the library wrote it, or 0"
            )
            assert found == ([] if value in quiet else [want])


def test_where_c_stays_in_ub_nothing_is_known_of_the_least_size():
    p = problem(pos_c="VECCALC")
    soc = chip("Ascend310P3")
    assert reserved(tiling(p, shareUbSize=5), p, soc) == []


def test_the_librarys_own_answers_keep_reserved_fields():
    for record, p, soc, t in answered():
        assert not [a for a in advise(RuleCase(t, p, soc)) if a.id == "RESERVED-FIELD"], record


@pytest.mark.parametrize(
    ("soc", "key", "place", "message"),
    [
        ("Ascend910B3", "pos_a", "VECIN", "Matmul takes A from GM or VECOUT or TSCM"),
        ("Ascend950PR_9589", "pos_b", "VECCALC", "Matmul takes B from GM or VECOUT or TSCM"),
        ("Ascend310P3", "pos_a", "TSCM", "Matmul takes A from GM or VECOUT"),
        ("Ascend310B1", "pos_b", "VECOUT", "Matmul takes B from GM"),
        ("Kirin9030", "pos_a", "GM", "Matmul takes A from TSCM"),
        ("Ascend910B3", "pos_c", "TSCM", "Matmul leaves C in GM or VECIN"),
        ("KirinX90", "pos_c", "VECIN", "Matmul leaves C in GM"),
        ("Ascend910A", "pos_c", "VECOUT", None),
        ("Ascend910B3", "pos_a", "TSCM", None),
        ("Ascend910B3", "pos_c", "VECIN", None),
    ],
)
def test_places_that_matmul_does_not_know(soc, key, place, message):
    p = problem(**({"pos_a": "GM", "pos_b": "GM"} | {key: place}))
    if soc == "Kirin9030":
        p = problem(pos_b="TSCM", **{key: place}, c="float16")
    found = [a.message for a in advise(RuleCase(tiling(p), p, chip(soc))) if a.id == "POSITION"]
    assert found == ([] if message is None else [f"{message} on {soc}, not {place}"])


def test_nonsense_gets_findings_not_advice():
    assert set(advice(tiling(baseM=0))) == {"IDLE-CORES"}


def test_advice_names_its_source():
    p, t = full(dbL0A=1)
    (found,) = check_tiling(t, p, B3, edition="001").advice
    assert found.to_json()["source"] == "TCubeTiling structure, older edition, recommended values"
    idle = check_tiling(tiling(), problem(), B3).advice[0]
    assert (idle.id, idle.source) == ("IDLE-CORES", "cubecore")
    assert "IDLE-CORES" not in ROWS


@pytest.mark.parametrize(("depth", "advised"), [(15, False), (16, True), (17, False)])
def test_the_vendors_published_tiling_fills_l1_and_is_told_so(depth, advised):
    """asc_mmhp_a2_case5 to case8 were measured with depthA1 16 and depthB1 8: 524288 B of L1."""
    p = problem(m=8192, n=8192, k=8192, trans_b=True, c="float16", chip="Ascend910B1")
    fields = {"baseM": 128, "baseN": 256, "baseK": 64, "stepKa": 8, "depthA1": depth}
    fields |= {"stepKb": 4, "depthB1": 8, "singleCoreM": 2048, "singleCoreN": 1536}
    found = check_tiling(tiling(p, usedCoreNum=24, **fields), p, chip("Ascend910B1"))
    assert ("L1-CAPACITY" in {f.rule for f in found.findings}) == (depth > 16)
    text = [a.message for a in found.advice if a.id == "L1-RESERVED"]
    assert text == (
        [
            "L1 use = 524288 B is more than the 524032 B that the tiling library plans: measured "
            "to work, but leaves no room for anything else; a budget of 524032 B for L1 plans with "
            "less"
        ]
        if advised
        else []
    )


def test_a_split_k_has_its_slices_behind_the_blocks_of_c():
    p = problem(m=64, n=64, k=100, split_k=True)
    t = tiling(p, singleCoreM=32, singleCoreN=64, singleCoreK=48, usedCoreNum=6)
    found = [(b.m0, b.n0, b.k0, b.k_len) for b in core_blocks(t)]
    slices = ((0, 48), (48, 48), (96, 4))
    assert found == [(m0, 0, k0, k_len) for k0, k_len in slices for m0 in (0, 32)]


@pytest.mark.parametrize(
    ("batch", "cores", "groups"), [(1, 20, 1), (3, 20, 3), (7, 4, 2), (9, 1, 1)]
)
def test_a_batch_is_dealt_out_to_groups_of_cores(batch, cores, groups):
    p = problem(m=64, n=64, k=64, batch=batch, cores=cores)
    t = tiling(p, singleCoreM=32, singleCoreN=64, usedCoreNum=min(2, cores))
    blocks = problem_blocks(p, B3, t)
    assert len(blocks) == groups * t.usedCoreNum
    assert [b.core for b in blocks] == list(range(len(blocks)))
    each = [(b.m0, b.batch0 + i * b.batch_step) for b in blocks for i in range(b.batches)]
    rows = [32 * i for i in range(t.usedCoreNum)]
    assert sorted(each) == sorted((m0, i) for m0 in rows for i in range(batch))


@pytest.mark.parametrize(
    ("soc", "kind", "trans_a", "texts"),
    [
        (
            "Ascend310P3",
            "int8",
            True,
            ["Matmul takes no transposed A of int8 on Ascend310P3 (vendor's SetAType)"],
        ),
        ("Ascend310P3", "int8", False, []),
        ("Ascend310P3", "float16", True, []),
        ("Ascend910B3", "int8", True, []),
    ],
)
def test_a_transposed_a_of_int8_is_not_for_the_inference_products(soc, kind, trans_a, texts):
    c = "int32" if kind == "int8" else "float32"
    p = problem(a=kind, c=c, trans_a=trans_a)
    case = RuleCase(tiling(p), p, chip(soc))
    for advised in (advise(case), advise_plan(case)):
        assert [a.message for a in advised if a.id == "TRANSPOSED-INT8"] == texts
