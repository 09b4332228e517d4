"""Why a product takes its time: each reason is what `time` says without its cause."""

from dataclasses import replace
from types import MappingProxyType

import pytest

import cubecore
from cubecore.advice.reasons import MEASURED_HEIGHTS, on_boundary
from cubecore.chips import chip
from cubecore.planning.timed_product import TimedProduct
from cubecore.workflows.calibration import validate
from cubecore.workflows.calibration.cases import Unmapped
from cubecore.workflows.calibration.measured_points import published
from parts import strided
from workflows.command import DONE, cli

CHIP = "Ascend910B3"
LARGE = {"m": 4096, "n": 4096, "k": 4096, "cores": 20, "chip": CHIP}
BLOCK = {
    "baseM": 128,
    "baseN": 128,
    "baseK": 64,
    "stepM": 1,
    "stepN": 1,
    "stepKa": 4,
    "stepKb": 4,
    "depthA1": 8,
    "depthB1": 8,
    "dbL0A": 2,
    "dbL0B": 2,
    "dbL0C": 1,
    "usedCoreNum": 20,
}


def timed(problem, **fields):
    """Time a problem in the plan's tiling with fields replaced."""
    if not fields:
        return cubecore.time(problem)
    tiling = replace(cubecore.plan(problem, alternatives=0).tiling, **fields)
    return cubecore.time(problem, tiling=tiling)


def start_text():
    """Return what is said of launch and start, which take the same of any product."""
    b3 = chip(CHIP)
    us = (b3.launch_cycles + b3.start_cycles) / b3.frequency_hz * 1e6
    return f"launch and core start cost {us:.1f} us, whatever the shape"


def by_cause(answer):
    return {reason.cause: reason for reason in answer.reasons}


def test_blocks_that_begin_off_the_boundary_name_the_field_and_its_value():
    slow = timed(LARGE, **BLOCK, singleCoreM=1024, singleCoreN=820)
    reason = by_cause(slow)["row starts"]
    assert reason.text == (
        "blocks of B begin 1,640 B apart, off the boundary of 256 B; "
        "singleCoreN = 896 puts them on it"
    )
    assert dict(reason.fields) == {"singleCoreN": 896}
    mended = timed(LARGE, **BLOCK, singleCoreM=1024, singleCoreN=896)
    assert "row starts" not in by_cause(mended)
    assert mended.timeline.cycles < 0.5 * slow.timeline.cycles
    assert slow.reasons[0] is reason
    assert reason.rough, "no published product loses as much"
    free = MappingProxyType(dict.fromkeys(slow.request.chip.gm_to_l1_misaligned_block_cycles, 0.0))
    level = replace(slow.request.chip, gm_to_l1_misaligned_block_cycles=free)
    problem, tiling = slow.request.problem, slow.tiling
    without = TimedProduct(problem, tiling, level).line
    assert reason.cycles == slow.timeline.cycles - without.cycles


@pytest.mark.thinned(5)
@pytest.mark.parametrize("off", [1, 8, 16, 64, 127])
def test_rows_that_lie_off_the_boundary_name_the_padded_extent(off):
    """And the padded product is faster, as the reason says."""
    answer = timed({"m": 1024, "n": 1024, "k": 4096 + off, "chip": CHIP})
    reason = by_cause(answer)["row starts"]
    rows = f"rows of A begin {2 * (4096 + off):,} B apart, off the boundary of 256 B"
    assert reason.text.split("; ")[:2] == [rows, "K padded to 4,224 puts them on it"]
    padded = timed({"m": 1024, "n": 1024, "k": 4224, "chip": CHIP})
    assert padded.timeline.cycles < answer.timeline.cycles


def test_rows_that_no_load_steps_over_name_the_storage_that_shortens_them():
    """B stored [n, k] is that much faster with the same tiling."""
    problem = {"m": 2048, "n": 70016, "k": 512, "chip": CHIP}
    answer = timed(problem)
    reason = by_cause(answer)["long rows"]
    assert reason.text == (
        "rows of B have 70,016 elements; over 65,535 each is a load of its own; "
        "stored [n, k] it has rows of 512"
    )
    stored = cubecore.time(problem, trans_b=True, tiling=answer.tiling)
    assert reason.cycles == answer.timeline.cycles - stored.timeline.cycles
    assert reason.cycles > 0
    assert "long rows" not in by_cause(stored)


def test_padding_that_makes_a_row_a_load_of_its_own_is_not_advised():
    problem = {"m": 4096, "n": 65520, "k": 4096, "chip": CHIP}
    told = by_cause(timed(problem))
    assert "long rows" not in told
    assert told["row starts"].text == (
        "rows of B begin 131,040 B apart, off the boundary of 256 B; "
        "padded to 65,536 each row would be a load of its own"
    )


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("n", "long"), [(131056, False), (131072, True)])
def test_pairs_of_4_bits_count_as_one_element_of_a_row(n, long):
    problem = {"m": 2048, "n": n, "k": 1024, "a": "int4", "c": "int32", "chip": CHIP}
    assert ("long rows" in by_cause(timed(problem))) is long


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "problem",
    [
        {"m": 512, "n": 512, "k": 4096},
        {"m": 500, "n": 512, "k": 4096},
        {"m": 512, "n": 512, "k": 4112, "format_a": "NZ", "format_b": "NZ"},
    ],
)
def test_rows_on_the_boundary_are_no_reason(problem):
    assert "row starts" not in by_cause(timed({**problem, "chip": CHIP}))


@pytest.mark.parametrize(
    "problem",
    [
        {"a": "float4_e2m1fn", "scale_a": "float8_e8m0fnu", "chip": "Ascend950PR_9599"},
        {"a": "int4", "trans_b": True, "chip": CHIP},
        {"a": "int8", "chip": CHIP},
        {"a": "float32", "chip": CHIP},
        {"template": "NORM", "batch": 3, "chip": CHIP},
        {"launch": "mix", "bias": "float32", "chip": CHIP},
    ],
    ids=str,
)
@pytest.mark.thinned(2)
def test_every_kind_of_product_is_told(problem):
    answer = timed({"m": 100, "n": 640, "k": 1024, **problem})
    assert "start-up" in by_cause(answer)
    assert all(reason.cycles is None or reason.cycles > 0 for reason in answer.reasons)


def test_one_buffer_names_the_field_and_whether_there_is_room():
    fields = {**BLOCK, "singleCoreM": 1024, "singleCoreN": 896}
    one = timed(LARGE, **{**fields, "depthA1": 4})
    two = timed(LARGE, **fields)
    reason = by_cause(one)["one buffer"]
    assert reason.text == (
        "A has one buffer in L1, so that loads wait for the moves out of it; depthA1 = 8 gives two"
    )
    assert (dict(reason.fields), reason.cycles) == (
        {"depthA1": 8},
        one.timeline.cycles - two.timeline.cycles,
    )
    lone = by_cause(timed(LARGE, **{**fields, "dbL0A": 1}))["one buffer"]
    assert lone.text.startswith("L0A has one buffer, so that moves wait for the Mmad before; dbL0A")


def test_what_l2_does_not_hold_is_read_again():
    problem = {"m": 4096, "n": 16384, "k": 16384, "chip": CHIP}
    answer = timed(problem)
    reason = by_cause(answer)["read again"]
    line = answer.timeline
    again = line.hbm_read_bytes / (2 * 16384 * (4096 + 16384))
    assert reason.text == f"device memory brings A and B {again:.1f} times; L2 has 201 MB"
    held = cubecore.time(problem, tiling=answer.tiling, settings={"l2_bytes": str(1 << 50)})
    assert reason.cycles == line.cycles - held.timeline.cycles
    assert "read again" not in by_cause(held)


def test_a_small_product_is_launch_and_start():
    answer = timed({"m": 64, "n": 64, "k": 64, "chip": CHIP})
    reason = by_cause(answer)["start-up"]
    assert reason.text == start_text()
    assert answer.timeline.limited_by == "start-up"
    assert "start-up" not in by_cause(timed(LARGE))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("chip", [CHIP, "Ascend950PR_9589"])
@pytest.mark.parametrize("step", ["MDL", "NORM", "CONSTANT", "BASIC"])
def test_the_bound_is_that_of_the_kind_of_kernel(chip, step):
    """Kernels that start sooner have a lower bound, which is also what the start-up is told by."""
    answer = cubecore.time(m=32, n=32, k=32, chip=chip, step=step)
    sheet = answer.request.chip
    start = {"CONSTANT", "BASIC"} & {step} and sheet.short_start_cycles[step]
    start = sheet.launch_cycles + (start or sheet.start_cycles)
    assert start < answer.lower_bound < start + 100
    assert answer.lower_bound <= answer.timeline.cycles
    assert answer.to_json()["lower_bound_us"] == sheet.microseconds(answer.lower_bound)
    assert by_cause(answer)["start-up"].cycles == start


def test_cores_without_a_block_are_counted():
    answer = timed({"m": 16, "n": 4096, "k": 4096, "chip": CHIP})
    idle = 20 - answer.tiling.usedCoreNum
    assert idle > 1
    assert by_cause(answer)["idle cores"].text == f"{idle} cores of 20 have no block of C"
    assert "idle cores" not in by_cause(timed({"m": 64, "n": 64, "k": 64, "batch": 20}))
    batch = {"m": 64, "n": 64, "k": 64, "batch": 3, "template": "NORM", "chip": CHIP}
    tiling = cubecore.plan(batch, alternatives=0).tiling
    groups = min(3, 20 // tiling.usedCoreNum)
    idle = by_cause(timed(batch)).get("idle cores")
    busy = groups * tiling.usedCoreNum
    assert (idle is None) == (busy == 20)
    ragged = timed(LARGE, **{**BLOCK, "usedCoreNum": 18}, singleCoreM=1408, singleCoreN=768)
    assert by_cause(ragged)["uneven blocks"].text.startswith("the largest block is 1.1")


def test_a_short_base_k_keeps_the_scalar_unit_busy():
    fields = {**BLOCK, "baseM": 32, "baseN": 32, "baseK": 16, "singleCoreM": 1024}
    answer = timed(LARGE, **fields, singleCoreN=896)
    found = by_cause(answer)
    assert found["serial products"].text == (
        "a base block of 32 x 32 has fewer than 10 fractals, so that each Mmad waits for the one "
        "before"
    )
    assert "a longer baseK than 16 makes fewer" in found["scalar unit"].text


def test_the_command_the_json_and_the_dearest_first():
    words = ("time", "--m", 1024, "--n", 1024, "--k", 4100, "--chip", CHIP)
    answer = timed({"m": 1024, "n": 1024, "k": 4100, "chip": CHIP})
    told = cli(*words)
    assert told.code == DONE
    lines = told.out.splitlines()
    place = lines.index("Where the time goes (share saved if removed)")
    first = answer.reasons[0]
    share = f"{first.cycles / answer.timeline.cycles:.0%}"
    assert lines[place + 1] == f"  {share}  {first.cause}: {first.text}"
    assert cli(*words, "--json").json["reasons"] == [r.to_json() for r in answer.reasons]
    costs = [reason.cycles or 0 for reason in answer.reasons]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.sweep
def test_the_share_that_begins_on_the_boundary_is_tried_as_a_change():
    tiling = replace(cubecore.plan(LARGE).tiling, **BLOCK, singleCoreM=1024, singleCoreN=820)
    changes = cubecore.time(LARGE, tiling=tiling, advise=True).changes
    change = next(one for one in changes.tried if one.kind == "row starts")
    assert (change.of, change.what) == ("tiling", "singleCoreN 820 -> 896")
    kinds = [one.of == "chip" for one in changes.tried]
    assert kinds == sorted(kinds), "a chip that has more comes behind what a user can change"
    wider = next(one for one in changes.tried if one.kind == "AI Cores")
    assert wider.what == "40 AI Cores in place of 20, in another tiling"


@pytest.mark.sweep
def test_heights_are_those_of_the_published_products():
    """The factor of the point that is slowed most: by rows off 256 B, and by blocks off it."""
    most = {"rows": 1.0, "blocks": 1.0}
    for point in published():
        try:
            case = validate.case_of(point)
        except Unmapped:
            continue
        table = case.chip.gm_to_l1_misaligned_block_cycles
        if not case.tiling_known or case.chip.arch != "2201" or not table:
            continue
        free = MappingProxyType(dict.fromkeys(table, 0.0))
        level = replace(case.chip, gm_to_l1_misaligned_block_cycles=free)
        own, without = (validate._timed(case, chip).cycles for chip in (case.chip, level))
        extents = [point.k if "T" in point.trans else point.n, point.k]
        rows = any(2 * extent % 256 for extent in extents)
        kind = "rows" if rows else "blocks"
        most[kind] = max(most[kind], own / without)
    assert MEASURED_HEIGHTS["rows"] == pytest.approx(most["rows"], abs=0.01)
    assert MEASURED_HEIGHTS["blocks"] == MEASURED_HEIGHTS["chunks"]
    assert MEASURED_HEIGHTS["blocks"] == pytest.approx(most["blocks"], abs=0.01)


@pytest.mark.parametrize("n", strided(range(1, 300, 7)))
@pytest.mark.thinned(9)
def test_shares_on_the_boundary_begin_on_it(n):
    """By the definition: each core's first element of a row of B."""
    problem = {"m": 256, "n": 8 * n, "k": 256, "chip": CHIP}
    answer = timed(problem)
    product = TimedProduct(answer.request.problem, answer.tiling, answer.request.chip)
    fields = on_boundary(product)
    share = fields.get("singleCoreN", answer.tiling.singleCoreN)
    pitch_is_off = 2 * 8 * n % 256
    whole = answer.tiling.singleCoreN >= 8 * n
    starts = [2 * share * core % 256 for core in range(-(-8 * n // share))]
    assert pitch_is_off or whole or not any(starts)


def test_a_plan_gives_the_reasons_of_time():
    problem = {"m": 54, "n": 820, "k": 4096, "chip": CHIP}
    plan = cubecore.plan(problem, alternatives=0)
    assert plan.reasons == cubecore.time(problem, tiling=plan.tiling).reasons
    answer = cli("plan", "--m", "54", "--n", "820", "--k", "4096", "--chip", CHIP)
    assert "Where the time goes (share saved if removed)\n" in answer.out
    padded = (
        "rows of B begin 1,640 B apart, off the boundary of 256 B; N padded to 896 puts them on it"
    )
    assert padded in answer.out


def test_a_plan_of_little_work_names_what_costs_beside_the_start():
    start, rows = cubecore.plan(m=1, n=358, k=896, a="float32", chip=CHIP).reasons
    assert (start.cause, start.text) == ("start-up", start_text())
    padded = (
        "rows of B begin 1,432 B apart, off the boundary of 256 B; N padded to 384 puts them on it"
    )
    assert (rows.cause, rows.text) == ("row starts", padded)


def test_a_plan_that_is_not_timed_has_no_reasons():
    assert cubecore.plan(m=64, n=64, k=64, chip="Ascend310P3").reasons == ()


def test_the_json_of_a_plan_has_them():
    shape = ("--m", 16, "--n", 4000, "--k", 1024, "--chip", CHIP, "--alternatives", 0)
    made = cli("plan", *shape, "--json").json
    plan = cubecore.plan(m=16, n=4000, k=1024, chip=CHIP, alternatives=0)
    assert made["reasons"] == [reason.to_json() for reason in plan.reasons]
    assert "row starts" in {reason["cause"] for reason in made["reasons"]}
