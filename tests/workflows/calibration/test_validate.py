"""validate: points and lines that are none, what errors amount to, and the command."""

import json
import re
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

import cubecore
from cubecore.chips import chip
from cubecore.chips.catalog import chip_names
from cubecore.reports.html.charts.scatter import mark_of
from cubecore.timing.launch import time_launch
from cubecore.workflows.calibration.cases import Unmapped
from cubecore.workflows.calibration.matmul_cases import matmul_case
from cubecore.workflows.calibration.measured_points import PUBLISHED, published, read_points
from cubecore.workflows.calibration.stated_tilings import in_bands, in_parts
from cubecore.workflows.calibration.validate import case_of, validate
from cubecore.workflows.calibration.validation import GROUPS, Errors
from workflows.calibration.planned import planned
from workflows.command import BAD_REQUEST, DONE, FOUND, assert_refused, cli

SOURCES = Path(cubecore.__file__).parent
GOOD = {
    "id": "mine_1",
    "kind": "matmul",
    "source": "a bench of my own",
    "chip": "Ascend910B3",
    "cores": 20,
    "M": 2048,
    "N": 2560,
    "K": 1024,
    "dtype_a": "half",
    "dtype_b": "half",
    "dtype_c": "half",
    "trans": "A:N B:N",
    "repository": "mine",
    "cache": "cold",
    "launch": "counted",
    "tiling": {},
    "measured": {"total_us": 100.0},
}
PROBLEM = {"chip": "Ascend910B3", "m": 2048, "n": 2560, "k": 1024, "c": "float16"}


def written(tmp_path, *lines):
    path = tmp_path / "points.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


# --- what is predicted


def stated_tiling(tiling, **more):
    """Return a point that states all of a planned tiling."""
    t = tiling
    return {
        "baseM": t.baseM,
        "baseN": t.baseN,
        "baseK": t.baseK,
        "singleM": t.singleCoreM,
        "singleN": t.singleCoreN,
        "stepM": t.stepM,
        "stepN": t.stepN,
        "stepKa": t.stepKa,
        "stepKb": t.stepKb,
        "depthA1": t.depthA1 // t.stepM,
        "depthB1": t.depthB1 // t.stepN,
        "template": "MDL",
        **more,
    }


@pytest.mark.parametrize("stated", [True, False])
def test_a_point_is_what_time_says_of_its_tiling(tmp_path, stated):
    """A wall is the launch's, an aic_time without the launch; a pipe is the mean of the cores."""
    tiling = planned(PROBLEM)
    now = cubecore.time(PROBLEM, tiling=tiling, step=None if stated else "CONSTANT").timeline
    hertz = chip("Ascend910B3").frequency_hz
    launch_us = chip("Ascend910B3").launch_cycles * 1e6 / hertz
    if not stated:  # a library's product starts as one written by hand
        starts = chip("Ascend910B3").short_start_cycles
        now = replace(now, us=now.us + (starts["BASIC"] - starts["CONSTANT"]) * 1e6 / hertz)
    keys = {"tiling": stated_tiling(tiling)} if stated else {}
    wall = (
        GOOD | keys | {"measured": {"total_us": now.us, "aic_mac_us": now.pipes["M"] / hertz * 1e6}}
    )
    core = GOOD | keys | {"id": "mine_2", "measured": {"aic_time_us": now.us - launch_us}}
    answer = validate(written(tmp_path, wall, core))
    assert [case.skipped for case in answer.cases] == [None, None]
    for case in answer.cases:
        assert case.wall.error == pytest.approx(0, abs=1e-12)
        assert case.tiling_known == stated
        assert case.group == ("known" if stated else "library")
        assert ("our planner's tiling" in case.assumed) != stated
    assert answer.cases[0].pipes["M"].error == pytest.approx(0, abs=1e-12)


def test_a_product_with_a_part_on_vector_cores_is_counted_apart(tmp_path):
    part = "vector cores scale the result by rows and columns"
    quant = GOOD | {"id": "mine_2", "dtype_a": "int8", "dtype_b": "int8", "left_out": part}
    answer = validate(written(tmp_path, GOOD, quant))
    assert [case.group for case in answer.cases] == ["library", "partial"]
    assert [f"{part}: left out" in case.assumed for case in answer.cases] == [False, True]


def test_what_a_tiling_leaves_open_is_said(tmp_path):
    keys = {"tiling": {"baseM": 128, "baseN": 256, "baseK": 64, "template": "MDL"}}
    (case,) = validate(written(tmp_path, GOOD | keys)).cases
    assert case.assumed == (
        "written on the Matmul API",
        "stepKa 8, stepKb 4: what fills L1",
        "two buffers in L1",
        "singleCoreM 512, singleCoreN 512",
    )


def test_automatic_flags_take_longer_as_one_publication_says():
    """pto-dsl's pairs; both sides of a pair are one kernel but for flags."""
    points = [point for point in published() if point.repository == "pto-dsl"]
    ratios = {}
    for point in points:
        case = matmul_case(point)
        us = time_launch(case.launch(), case.chip).us
        sync = point.tiling["sync"]
        ratios.setdefault(point.m, {})[sync] = us
        said = [text for text in case.assumed if text.startswith("automatic flags")]
        assert bool(said) == (sync == "automatic")
    slower = [pair["automatic"] / pair["manual"] for pair in ratios.values()]
    assert len(slower) == 7
    published_ratios = [1.038, 1.139, 1.147, 1.154, 1.157, 1.162, 1.160]
    assert slower[1:] == pytest.approx(published_ratios[1:], abs=0.02)  # the first is a host's time


def test_bands_of_blocks_give_the_cores_what_the_publication_says():
    """2 rows of 128 and 32, 24 columns, 20 cores: who has the most rows in all (catlass)."""
    for band, most, cores in ((3, 128 + 128 + 32, {1, 2, 5, 6}), (4, 128 + 128, {12, 13, 14, 15})):
        rows = [0] * 20
        blocks = list(in_bands((0, 128), range(24), band))
        assert sorted(blocks) == [(m, n) for m in (0, 128) for n in range(24)]
        for place, (first, _) in enumerate(blocks):
            rows[place % 20] += 32 if first else 128
        assert max(rows) == most
        assert {core for core, held in enumerate(rows) if held == most} == cores


def test_parts_of_blocks_are_dealt_along_diagonals():
    """Every block once; neighbours share neither row nor column; a part ends before the next."""
    rows, columns = range(0, 7 * 128, 128), range(0, 6 * 256, 256)
    blocks = list(in_parts(rows, columns, 4, 4))
    assert sorted(blocks) == [(m, n) for m in rows for n in columns]
    first = blocks[:16]
    assert {m for m, _ in first} == {0, 128, 256, 384}
    assert {n for _, n in first} == {
        0,
        256,
        512,
        768,
    }
    for start in range(0, 16, 4):
        at_a_time = first[start : start + 4]
        assert len({m for m, _ in at_a_time}) == len({n for _, n in at_a_time}) == 4


SLICES = {
    "M": 128,
    "N": 256,
    "K": 384,
    "dtype_c": "float",
    "cores": None,
    "soc": "Ascend910B1",
    "tiling": {"mode": "MIX", "usedCoreNum": 2, "baseM": 32, "baseN": 64, "singleK": 192},
}


def test_slices_and_the_clearing_of_c_are_told_apart(tmp_path):
    """Half of K on each client; storing 128 KB of zeros before takes more than a microsecond."""
    cleared = SLICES | {"tiling": SLICES["tiling"] | {"clears_c": True}}
    shared = SLICES | {"tiling": SLICES["tiling"] | {"usedCoreNum": 1, "singleK": 384}}
    answers = validate(
        written(tmp_path, *named(*(GOOD | one for one in (SLICES, cleared, shared))))
    )
    slices, with_zeros, whole = answers.cases
    assert "baseK 192: what L0 holds twice" in slices.assumed
    assert "vector cores clear C before" in with_zeros.assumed
    assert with_zeros.wall.predicted_us > slices.wall.predicted_us + 1
    assert not slices.tiling_known
    assert "baseK 256: what L0 holds twice" in whole.assumed


def named(*points):
    """Return points with ids of their own."""
    return [point | {"id": f"mine_{number}"} for number, point in enumerate(points)]


BY_HAND = {
    "api": "basic",
    "M": 512,
    "N": 8192,
    "dtype_a": "int8",
    "dtype_b": "int8",
    "tiling": {"L1": "128,256,512", "L0": "128,256,128"},
}


def test_vector_cores_that_scale_sums_read_and_write_c_once_more(tmp_path):
    """Sums have 4 bytes and C 2; by a library's fixpipe, or by no note of it, C is written once."""
    scaled = {**BY_HAND["tiling"], "epilogue": "vector cores"}
    points = [GOOD | BY_HAND, GOOD | BY_HAND | {"tiling": scaled}]
    library = GOOD | BY_HAND | {"api": "library", "tiling": {}, "dtype_c": "bfloat16"}
    read, _ = read_points(written(tmp_path, *named(*points, library)))
    plain, after, narrow = map(case_of, read)
    sums = 512 * 8192
    first, second, third = (time_launch(c.launch(), c.chip) for c in (plain, after, narrow))
    assert first.written_bytes == 2 * sums
    assert second.written_bytes == third.written_bytes == 6 * sums
    assert second.us > 1.05 * first.us


def test_a_core_that_keeps_a_brings_it_once_for_each_row_of_blocks(tmp_path):
    """4 x 32 blocks on 20 cores, 7 in a stretch: A of a row of blocks, for each stretch in it."""
    kept = {**BY_HAND["tiling"], "full_load": "A"}
    points = [GOOD | BY_HAND, GOOD | BY_HAND | {"tiling": kept}]
    read, _ = read_points(written(tmp_path, *named(*points)))
    plain, full = map(case_of, read)
    k, rows, columns = GOOD["K"], 128, 256
    stretches = {(block // 32, block // 7) for block in range(128)}
    b = 128 * columns * k
    timed = [time_launch(case.launch(), case.chip) for case in (plain, full)]
    assert timed[0].read_bytes == 128 * rows * k + b
    assert timed[1].read_bytes == len(stretches) * rows * k + b


def test_a_chip_of_settings_is_another_chip(tmp_path):
    path = written(tmp_path, GOOD)
    slow = validate(path, settings={"frequency_hz": "900000000"}).cases[0].wall
    fast = validate(path).cases[0].wall
    assert slow.predicted_us > 1.5 * fast.predicted_us


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"chip": "Ascend999"}, "chip must be a SoC or a family of the catalogue, got 'Ascend999'"),
        ({"kind": "conv"}, "convolutions are not in the kernels"),
        ({"kind": "softmax"}, "kind must be one of matmul, matmul+vector, grouped_matmul, "
         "grouped_matmul+vector, vector, flash_attention, vector_ubench, dma_read, launch, "
         "got 'softmax'"),
        ({"K": None}, "the extents are not stated"),
        ({"dtype_a": "int3"}, "types must be ones of the kernel, got int3 x half -> half"),
        ({"tiling": {"groups": 4}}, "grouped products are not in the kernel"),
        ({"tiling": {"baseM": 128}}, "tiling.baseN must be stated for kind matmul"),
        ({"measured": {"MB": 3}}, "no time of the launch or its pipes is stated"),
        ({"measured": {"TFLOPS": 3}, "counts": "2MNK", "N": None},
         "N must be stated for TFLOPS to give a time"),
        ({"measured": {"TFLOPS": 3, "total_us": 10}, "counts": "2MNK"},
         "TFLOPS gives 3579 us and contradicts the time of 10 us"),
        ({"cores": 24}, "cores must be at most the 20 AIC cores of Ascend910B3, got 24; "
         "state another soc"),
        ({"soc": "Ascend910B1", "cores": 25}, "cores must be at most the 24 AIC cores of "
         "Ascend910B1, got 25; state another soc"),
        ({"soc": "A2"}, "soc must be a SoC of the catalogue, got 'A2'"),
        ({"kind": "matmul+vector"}, "vector cores work beside the product"),
        ({"dtype_b": "int8"}, "weights are dequantised on vector cores"),
        ({"kind": "vector", "K": None}, "op must be stated for kind vector"),
        ({"kind": "vector", "K": None, "op": "top_k"},
         "op must be one that `cubecore time --op` takes, got 'top_k'"),
        ({"kind": "vector", "K": None, "op": "swiglu", "dtype_a": "int8"},
         "dtype_a must be float16 or bfloat16 or float32 for op swiglu, got int8"),
        ({"kind": "vector", "K": None, "op": "exp", "M": None}, "M must be stated for kind vector"),
        ({"kind": "vector", "K": None, "op": "exp", "M": None, "counts": "read",
          "measured": {"GBps": 3}}, "M must be stated for GBps to give a time"),
        ({"kind": "vector", "K": None, "op": "exp", "measured": {"GBps": 3}},
         "counts must be stated for GBps to give a time"),
        ({"kind": "dma_read"}, "tiling.tensor must be stated for kind dma_read"),
        ({"kind": "launch", "M": None, "N": None, "K": None, "cores": 99},
         "more blocks than cores: how they queue is not modelled"),
    ],
)  # fmt: skip
def test_a_point_that_cannot_be_timed_says_why(tmp_path, changes, reason):
    (case,) = validate(written(tmp_path, GOOD | changes)).cases
    assert case.skipped == reason
    assert case.wall is None


# --- the columns decide


def test_the_columns_say_how_a_point_was_measured(tmp_path):
    """A launch that is not counted is taken off; a warm L2 saves time; a rate is a time."""
    us = validate(written(tmp_path, GOOD)).cases[0].wall.predicted_us
    tflops = 2 * 2048 * 2560 * 1024 / us * 1e-6
    alone = GOOD | {"id": "mine_2", "launch": "not counted"}
    warm = GOOD | {"id": "mine_3", "cache": "warm"}
    rate = GOOD | {"id": "mine_4", "measured": {"TFLOPS": tflops}, "counts": "2MNK"}
    bare = {name: GOOD[name] for name in GOOD if name not in {"cache", "launch"}} | {"id": "mine_5"}
    cases = validate(written(tmp_path, alone, warm, rate, bare)).cases
    b3 = chip("Ascend910B3")
    taken_off = us - b3.launch_cycles / b3.frequency_hz * 1e6
    assert cases[0].wall.predicted_us == pytest.approx(taken_off, abs=1e-9)
    assert cases[1].wall.predicted_us < us
    assert cases[2].wall.error == pytest.approx(0, abs=1e-9)
    assert cases[3].wall.predicted_us == us
    assert set(cases[3].assumed) >= {
        "L2 is cold: cache is not stated",
        "the launch is counted: launch is not stated",
    }


def test_bytes_are_counted_by_the_arrays_that_a_function_reads_and_writes(tmp_path):
    base = GOOD | {
        "kind": "vector",
        "K": None,
        "cores": 40,
        "dtype_c": "float",
        "tiling": {"dataCopyLen": 4096},
    }
    elements = GOOD["M"] * GOOD["N"]
    for op, counts, size in (
        ("exp", "read", 2),
        ("exp", "read+write", 6),
        ("exp", "write", 4),
        ("add", "read", 4),
        ("add", "read+write", 8),
    ):
        rate = base | {"op": op, "counts": counts, "measured": {"GBps": 1000.0}}
        (case,) = validate(written(tmp_path, rate)).cases
        assert case.wall.measured_us == pytest.approx(elements * size / 1e6)


def test_a_doubted_point_is_counted_apart_and_assumptions_name_who_made_them(tmp_path):
    keys = {
        "tiling": stated_tiling(planned(PROBLEM)),
        "doubt": "twice what the table before says",
        "assumed": [
            {"text": "C is float16", "by": "cubecore"},
            {"text": "L2 is cold", "by": "the authors"},
        ],
    }
    (case,) = validate(written(tmp_path, GOOD | keys)).cases
    assert case.group == "doubted"
    assert set(case.assumed) >= {keys["doubt"], "C is float16", "L2 is cold (the authors)"}


def renamed(number, record):
    """Return a point under another id, without notes, from another page of the repository."""
    return {**record, "id": f"p{number}", "note": "", "source": ""}


@pytest.mark.sweep
def test_ids_notes_and_sources_decide_nothing(tmp_path):
    lines = [json.loads(line) for line in PUBLISHED.read_text("utf-8").splitlines()]
    path = written(tmp_path, *(renamed(number, line) for number, line in enumerate(lines)))
    points, unreadable = read_points(path)
    assert (len(points), unreadable) == (len(lines), [])
    for point, other in zip(published()[::4], points[::4], strict=True):
        assert replace(point, id=other.id, source=other.source) == other
        assert described(point) == described(other)


def described(point):
    """Return a point's case without what is made of it later, or why there is none."""
    try:
        case = case_of(point)
    except Unmapped as reason:
        return str(reason)
    return case.chip.name, replace(case, launch=None, planned_on=None, chip=None)


def test_no_module_contains_the_id_of_a_point():
    ids = {point.id for point in published()}
    for path in SOURCES.rglob("*.py"):
        words = set(re.findall(r"\w+", path.read_text("utf-8")))
        assert not words & ids, path


def test_every_published_point_states_its_columns():
    for point in published():
        assert point.repository, point.id
        assert point.cache, point.id
        assert point.launch, point.id
        assert point.api or point.kind not in {"matmul", "vector"}, point.id
        unknown = point.chip not in chip_names() and not point.soc
        assert not unknown or case_is_skipped(point), point.id


def case_is_skipped(point):
    return isinstance(described(point), str)


@pytest.mark.parametrize(("formats", "like"), [("ND/NZ/ND", "Row/zN"), ("ND/ND/ND", "Row/Row")])
def test_formats_of_several_publications_say_one_thing(tmp_path, formats, like):
    points = [GOOD | {"id": name, "formats": name} for name in (formats, like)]
    one, other = validate(written(tmp_path, *points)).cases
    assert one.wall.predicted_us == other.wall.predicted_us


def test_fractals_of_b_change_the_time(tmp_path):
    points = [GOOD | {"id": name, "formats": name} for name in ("ND/ND/ND", "ND/NZ/ND")]
    plain, fractals = validate(written(tmp_path, *points)).cases
    assert plain.wall.predicted_us != fractals.wall.predicted_us


# --- lines that are no points


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "a line must be a JSON object, got something else"),
        ("[1]", "a line must be a JSON object, got something else"),
        ("[" * 50_000, "a line must be a JSON object, got something else"),
        (" " * 100_001 + "{}", "a line must be at most 100000 characters, got 100003"),
        (GOOD | {"colour": 1}, "a point must have only known fields, got 'colour'"),
        (GOOD | {"chip": ""}, "chip must be given, got ''"),
        ({"id": "x"}, "kind must be given, got None"),
        (GOOD | {"measured": {}}, "measured must be given, got {}"),
        (GOOD | {"chip": 9}, "chip must be a text, got 9"),
        (GOOD | {"M": -4}, "M must be a positive integer, got -4"),
        (GOOD | {"M": 4.5}, "M must be a positive integer, got 4.5"),
        (GOOD | {"M": True}, "M must be a positive integer, got True"),
        (GOOD | {"M": 2**31}, "M must be a positive integer, got 2147483648"),
        (GOOD | {"tiling": 3}, "tiling must be an object, got 3"),
        (GOOD | {"measured": 3}, "measured must be an object, got 3"),
        (GOOD | {"tiling": {"baseM": "x"}}, "tiling.baseM must be a positive integer, got 'x'"),
        (GOOD | {"tiling": {"stepKa": 0}}, "tiling.stepKa must be a positive integer, got 0"),
        (
            GOOD | {"measured": {"total_ms": 3}},
            "measured.total_ms must have a known unit (_us, _ratio, TFLOPS, ...), got total_ms",
        ),
        (
            GOOD | {"measured": {"total_us": "3"}},
            "measured.total_us must be a number, not negative, got '3'",
        ),
        (
            GOOD | {"measured": {"total_us": -3}},
            "measured.total_us must be a number, not negative, got -3",
        ),
        (
            json.dumps(GOOD).replace("100.0", "NaN"),
            "measured.total_us must be a number, not negative, got nan",
        ),
        (GOOD, "id must be no other line's, got 'mine_1' again"),
        (GOOD | {"cache": "hot"}, "cache must be one of cold, warm, got 'hot'"),
        (GOOD | {"launch": 1}, "launch must be a text, got 1"),
        (GOOD | {"launch": "no"}, "launch must be one of counted, not counted, looped, got 'no'"),
        (GOOD | {"api": "tik"}, "api must be one of basic, matmul, library, got 'tik'"),
        (
            GOOD | {"counts": "mnk"},
            "counts must be one of 2MNK, read, write, read+write, got 'mnk'",
        ),
        (
            GOOD | {"api": "basic", "tiling": {"template": "MDL"}},
            "api basic has no kernel template and contradicts tiling.template 'MDL'",
        ),
        (
            GOOD | {"kind": "launch", "launch": "not counted"},
            "kind launch measures a launch and contradicts launch 'not counted'",
        ),
        (
            GOOD | {"kind": "vector", "counts": "2MNK"},
            "counts 2MNK counts a product and contradicts kind 'vector'",
        ),
        (
            GOOD | {"kind": "vector", "op": "attention", "tiling": {"shape": [4, 64, 64]}},
            "tiling.shape must be four positive integers (heads, queries, keys, head size) of "
            "attention, got [4, 64, 64]",
        ),
        (
            GOOD
            | {
                "kind": "vector",
                "op": "attention",
                "M": 3,
                "N": 64,
                "tiling": {"shape": [4, 1, 512, 64]},
            },
            "M 3 contradicts tiling.shape, whose heads x queries is 4",
        ),
        (
            GOOD
            | {
                "kind": "vector",
                "op": "attention",
                "M": 4,
                "N": 128,
                "tiling": {"shape": [4, 1, 512, 64]},
            },
            "N 128 contradicts tiling.shape, whose head size is 64",
        ),
        (
            GOOD | {"tiling": {"unitFlag": "on"}},
            "tiling.unitFlag must be true or false, got 'on'",
        ),
        (
            GOOD | {"tiling": {"tile": [64]}},
            "tiling.tile must be two positive integers, got [64]",
        ),
        (
            GOOD | {"tiling": {"epilogue": "UB"}},
            "tiling.epilogue must be one of fixpipe, vector cores, got 'UB'",
        ),
        *(
            (GOOD | {"tiling": tiling}, reason)
            for tiling, reason in (
                (
                    {"template": "FAST"},
                    "tiling.template must be one of NORM, MDL, IBSHARE, got 'FAST'",
                ),
                (
                    {"L1": "128,256", "L0": "128,256,64"},
                    "tiling.L1 must be three extents as '128,256,64', got '128,256'",
                ),
                (
                    {"L1": "128,256,64"},
                    "tiling.L1 and tiling.L0 must be given together, got one of them",
                ),
                (
                    {"L1": "128,256,64", "L0": "128,256,64", "baseM": 128},
                    "tiling.L0 is a tile of CATLASS and contradicts tiling.baseM",
                ),
                ({"baseM": 128, "singleM": 64}, "tiling.baseM 128 contradicts tiling.singleM 64"),
                ({"singleK": 1 << 20}, "tiling.singleK 1048576 contradicts K 1024"),
                (
                    {"stepKa": 4, "depthA1": 3},
                    "tiling.depthA1 3 contradicts the 4 blocks of its steps",
                ),
                ({"usedCoreNum": 99}, "tiling.usedCoreNum 99 contradicts cores 20"),
            )
        ),
        (GOOD | {"trans": "A:N"}, "trans must be A:N or A:T and B:N or B:T, got 'A:N'"),
        (
            GOOD | {"counts": "read"},
            "counts read counts bytes of a vector kernel and contradicts kind 'matmul'",
        ),
        (
            GOOD | {"tiling": {"basM": 128}},
            "tiling must have only known columns, got 'basM'; did you mean baseM?",
        ),
        (GOOD | {"tiling": {"zz": 1}}, "tiling must have only known columns, got 'zz'"),
        (
            GOOD | {"kind": "vector", "K": None, "op": "exp", "tiling": {"stepKa": 2}},
            "tiling.stepKa 2 is a product's and contradicts kind 'vector'",
        ),
        (
            GOOD | {"measured": {"total_us": 30, "TFLOPS": 280}},
            "counts must be stated for measured.TFLOPS, got none",
        ),
        (
            GOOD | {"formats": "ND/XY/ND"},
            "formats must name layouts (ND, DN, NZ, zN, nZ, FRACTAL_NZ, Row, Col, RowMajor, "
            "ColumnMajor, NC1HWC0, FRACTAL_Z, NCHW, NHWC), got 'ND/XY/ND'",
        ),
        (GOOD | {"kind": "launch"}, "M 2048 contradicts kind 'launch', which has no M"),
        (GOOD | {"kind": "vector"}, "K 1024 contradicts kind 'vector', which has no K"),
        (
            GOOD | {"kind": "vector", "K": None, "measured": {"total_us": 9, "aic_mac_us": 3}},
            "measured.aic_mac_us is the Cube's and contradicts kind 'vector'",
        ),
        (
            GOOD | {"measured": {"total_us": 30, "aic_mte2_us": 45}},
            "measured.aic_mte2_us 45 contradicts measured.total_us 30",
        ),
        (
            GOOD | {"assumed": "all"},
            'assumed must be a list of {"text": ..., "by": ...}, got \'all\'',
        ),
        (
            GOOD | {"assumed": [{"text": "C is float16"}]},
            "assumed must be a list of {\"text\": ..., \"by\": ...}, got {'text': 'C is float16'}",
        ),
    ],
)
def test_a_line_that_is_no_point_is_listed_and_the_rest_is_read(tmp_path, line, reason):
    points, unreadable = read_points(written(tmp_path, GOOD, line, GOOD | {"id": "mine_3"}))
    assert [point.id for point in points] == ["mine_1", "mine_3"]
    assert [(u.line, u.reason) for u in unreadable] == [(2, reason)]


@pytest.mark.parametrize("name", ["singleK", "stepKa", "depthA1", "usedCoreNum", "L0", "template"])
def test_a_column_of_a_tiling_that_is_null_is_not_stated(tmp_path, name):
    tiling = {"baseM": 128, "baseN": 128, "baseK": 64, "stepKb": 2, "depthB1": 4}
    stated = {n: value for n, value in tiling.items() if n != name}
    points, unreadable = read_points(written(tmp_path, GOOD | {"tiling": tiling | {name: None}}))
    assert (points[0].tiling, unreadable) == (stated, [])


# --- what errors amount to


@pytest.mark.parametrize("count", range(1, 25))
def test_median_and_percentile(count):
    values = [(7 * i) % 25 / 100 for i in range(count)]
    errors = Errors(tuple(sorted(values)))
    assert errors.median == median(values)
    below = sum(v <= errors.p90 for v in values)
    assert below >= 0.9 * count
    assert sum(v < errors.p90 for v in values) < 0.9 * count


def test_order_is_judged_within_a_series_where_times_differ(tmp_path):
    """Three tilings, two of which change places in what is stated; a fourth is near the first."""
    base = {"baseM": 128, "baseK": 64, "template": "MDL"}
    tilings = [base | {"baseN": n} for n in (64, 128, 256)]
    records = [GOOD | {"id": f"a_{i}", "tiling": t} for i, t in enumerate(tilings)]
    path = written(tmp_path, *records)
    us = [case.wall.predicted_us for case in validate(path).cases]
    assert us[0] > 1.1 * us[1] > 1.2 * us[2]
    told = [us[0], us[2], us[1]]
    series = [r | {"measured": {"total_us": t}} for r, t in zip(records, told, strict=True)]
    near = records[0] | {"id": "a_3", "measured": {"total_us": told[0] * 1.019}}
    elsewhere = records[0] | {"id": "b_0", "repository": "another"}
    orders = validate(written(tmp_path, *series, near, elsewhere)).orders
    found = {(o.one.point.id, o.other.point.id): o.right for o in orders}
    assert found == {
        ("a_0", "a_1"): True,
        ("a_0", "a_2"): True,
        ("a_1", "a_2"): False,
        ("a_1", "a_3"): True,
        ("a_2", "a_3"): True,
    }


def test_order_of_variants_is_judged_between_kernels_of_one_product(tmp_path):
    """By columns, vector cores scale the second's sums: it takes longer, by more than 5 %."""
    int8 = {"dtype_a": "int8", "dtype_b": "int8", "api": "library"}
    plain = GOOD | int8 | {"id": "by_fixpipe", "measured": {"total_us": 30}}
    scaled = plain | {"id": "scaled", "tiling": {"epilogue": "vector cores"}}
    slower = scaled | {"measured": {"total_us": 40}}
    near = scaled | {"id": "near", "measured": {"total_us": 31}}
    other = slower | {"id": "other", "dtype_a": "half", "dtype_b": "half", "tiling": {}}
    for one, right in ((slower, True), (scaled | {"measured": {"total_us": 20}}, False)):
        made = validate(written(tmp_path, plain, one, near, other))
        found = {(o.one.point.id, o.other.point.id): o.right for o in made.variants}
        assert found[("by_fixpipe", "scaled")] is right
        assert not any("other" in pair for pair in found)
        assert ("by_fixpipe", "near") not in found
        assert made.summary["order_of_variants"] == {
            "pairs": len(found),
            "right": sum(found.values()),
        }


def test_sums_that_vector_cores_scale_stay_within_the_ai_core_on_950(tmp_path):
    """Its fixpipe leaves them in UB; A2's pass through memory, whatever a flag costs."""
    int8 = {"dtype_a": "int8", "dtype_b": "int8", "dtype_c": "bfloat16", "api": "library"}
    newer = {"id": "newer", "chip": "Ascend950PR", "soc": "Ascend950PR_9589"}
    a2, a5 = validate(written(tmp_path, GOOD | int8, GOOD | int8 | newer)).cases
    assert "vector cores scale the sums of int32 when all are there" in a2.assumed
    assert "vector cores write sums of int32, which fixpipe leaves in their buffers" in a5.assumed


# --- the command


def test_the_command_answers_json_text_and_page(tmp_path):
    path = written(tmp_path, GOOD, GOOD | {"id": "<script>alert(1)</script>"})
    page = tmp_path / "v.html"
    answer = cli("validate", "--points", path, "--json", "--report", page)
    assert (answer.code, answer.err) == (DONE, "")
    first, second = answer.json["cases"]
    keys = "id chip kind measured_us predicted_us error tiling_known assumed skipped"
    assert set(keys.split()) <= set(first)
    assert first["error"] == pytest.approx(first["predicted_us"] / 100 - 1)
    assert second["predicted_us"] == first["predicted_us"]
    assert answer.json["summary"]["timed"] == 2
    text = page.read_text("utf-8")
    assert "<script" not in text
    assert text.count('class="case"') == 2
    assert "&lt;script&gt;alert(1)" in text
    assert "default-src &#39;none&#39;" in text
    assert "mine_1" in cli("validate", "--points", path).out


def test_a_broken_line_is_told_and_the_exit_code_says_so(tmp_path):
    path = written(tmp_path, "{", GOOD)
    answer = cli("validate", "--points", path)
    assert (answer.code, answer.err) == (FOUND, "")
    assert "  line 1: a line must be a JSON object, got something else\n" in answer.out
    assert "1 point: 1 timed, 0 not, 1 line not read" in answer.out
    assert cli("validate", "--points", path, "--json").json["unreadable"] == [
        {"line": 1, "id": "", "reason": "a line must be a JSON object, got something else"}
    ]


def test_a_file_that_is_not_there_and_a_setting_that_is_none(tmp_path):
    missing = tmp_path / "no.jsonl"
    line = f"cannot read --points {missing}: no such file"
    assert_refused(cli("validate", "--points", missing), line)
    answer = cli("validate", "--points", written(tmp_path, GOOD), "--set", "nonsense=1")
    assert answer.code == BAD_REQUEST


def test_every_group_has_a_mark_of_its_own():
    marks = [mark_of(number) for number in range(len(GROUPS))]
    assert len({(each["mark"], each["colour"]) for each in marks}) == len(GROUPS)


def test_the_text_has_every_case_once_and_the_page_every_mark(published):
    answer = published
    words = re.findall(r"\S+", answer.text)
    for case in answer.cases:
        assert words.count(case.point.id) == 1
    page = answer.page()
    assert page.count('class="case"') == sum(case.wall is not None for case in answer.timed)
