"""The benchmarks run and print JSON; how fast anything is, is not tested."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Pipe
from isa import rows_3510

FOLDER = Path(__file__).parents[1] / "benchmarks"
FIGURES = {"run_and_time_64_cubed_cold", "help", "plan_warm", "time_8192_cubed_on_24_cores"}


def answer_of(script, *arguments):
    """Run a benchmark; return the object that it prints."""
    command = [sys.executable, FOLDER / script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.sweep
def test_figures_of_planning_and_timing_stand_beside_their_targets():
    answer = answer_of("plan_and_time.py", "1")
    assert set(answer) == {"machine", "repeats", "figures", "ratios"}
    assert set(answer["figures"]) == FIGURES
    for figure in answer["figures"].values():
        assert set(figure) >= {"seconds", "target_seconds", "met"}
        assert figure["met"] == (figure["seconds"] < figure["target_seconds"])
    assert answer["figures"]["run_and_time_64_cubed_cold"]["verified"]
    assert answer["figures"]["plan_warm"]["problems"] >= 12
    large = answer["figures"]["time_8192_cubed_on_24_cores"]
    assert large["cores"] == 24
    assert large["issued"] > 1_000_000
    assert large["grown_bytes"] < large["issued"] * 8
    assert all(ratio > 0 for ratio in answer["ratios"].values())


@pytest.mark.sweep
def test_the_figures_of_vector_functions_stand_beside_their_targets():
    answer = answer_of("registers.py", "1")
    assert set(answer) == {"entry_ns", "add"}
    assert all(figure["value"] > 0 for figure in answer.values())


def test_the_figures_of_execution_are_verified_ratios():
    answer = answer_of("run_products.py", "64", "48", "32")
    assert set(answer["figures"]) == {"float16", "bfloat16", "int8"}
    for figure in answer["figures"].values():
        assert figure["verified"]
        assert figure["engine"] == "blas"
        assert figure["ratio"] * figure["reference_wall_s"] > 0


@pytest.mark.sweep
def test_the_figures_of_timing_stand_beside_their_targets():
    answer = answer_of("timing.py", "1", "8192")
    assert answer["cores"] == 24
    assert answer["full_walk"]["events"] > 1000
    for figure in answer["figures"].values():
        assert set(figure) == {"value", "target", "met"}


@pytest.mark.sweep
def test_the_planners_figures_stand_beside_their_targets():
    answer = answer_of("plan.py", "4", "3", "8192")
    assert answer["seed"] == 3
    lower = {"plan_median_s", "plan_p99_s", "sweep_10000_s"}
    aside = {"proven", "judged_in_plans_per_s"}
    assert set(answer["figures"]) == lower | aside | {"candidates_per_s"}
    for name in lower | {"candidates_per_s"}:
        figure = answer["figures"][name]
        value, target = figure["value"], figure["target"]
        assert value > 0
        assert figure["met"] == (value <= target if name in lower else value >= target)
    assert answer["figures"]["sweep_10000_s"]["queries"] == 4
    assert set(answer["ratios"]) == {"plan_over_check", "repair_over_plan"}
    assert all(ratio > 0 for ratio in answer["ratios"].values())


@pytest.mark.sweep
def test_instructions_stand_beside_numpys_own_time():
    answer = answer_of("instructions.py", "0.001")
    assert answer["repeats"] == [1, 64]
    assert len(answer["figures"]) >= 20
    for figure in answer["figures"]:
        for times in (figure["one"], figure["many"]):
            assert times["issue_us"] > 0
            assert times["numpy_us"] > 0
        assert figure["many"]["elements"] == 64 * figure["one"]["elements"]
        alone, apart = figure["one"]["lockstep_overhead_us"], figure["one"]["overhead_us"]
        assert figure["met"] == (alone <= answer["target_us"])
        assert figure["reference_met"] == (apart <= answer["target_us"])


_PLACES = ("", "_number", "_number_first", "_element", "_element_first")
UNTIMED = {
    **dict.fromkeys(
        ("set_cmpmask", "get_cmpmask", "set_deqscale", "set_va_reg_sb"), "a register is no work"
    ),
    "vconv_vdeqs162b8": "the work of vconv_deqs162b8, its scales from memory",
    "vsel_tensor": "the work of vsel_scalar, its bits from where a register says",
    "vgatherb": "the work of vgather on whole blocks",
    "duplicate_first": "the work of vector_dup, its number from memory",
    "vtranspose": "the work of scatter_vnchwconv_b16 without registers",
    "mad_sp": "the work of mad; its indices must be legal",
    "copy_cbuf_to_fbuf": "the work of copy_cbuf_to_fbuf_v2",
    **dict.fromkeys(
        ("load_image_gray", "load_image_rgb", "load_image_yuv"), "no call of NumPy is that work"
    ),
    "copy_matrix_cc_to_ub": "the work of copy_matrix_cc_to_gm, into another part's memory",
    **dict.fromkeys(
        ("copy_cbuf_to_ubuf_v2", "copy_ubuf_to_cbuf_v2"),
        "the work of copy_ubuf_to_ubuf, into another part's memory",
    ),
    **dict.fromkeys(rows_3510.ATOMICS, "one element, as store_scalar_gm"),
    "copy_gm_to_cbuf_align_v2": "the work of copy_gm_to_ubuf_align_v2, into L1",
    **dict.fromkeys(
        ("copy_gm_to_ubuf_nd", "copy_gm_to_ubuf_ndim"),
        "the work of copy_gm_to_ubuf_align_v2 in more dimensions",
    ),
    **dict.fromkeys(
        (
            f"compare_{how}{one}"
            for how in ("eq", "ne", "lt", "le", "gt", "ge")
            for one in ("", "s", "_element")
        ),
        "the work of vcmp, by any count",
    ),
    **dict.fromkeys((f"select_bits{one}" for one in _PLACES), "the work of vsel, by any count"),
    "broadcast": "the work of copy_ubuf_to_ubuf, its shapes from memory",
    **dict.fromkeys(("reduce_max", "reduce_min"), "the work of vcmax and vcmin by a count"),
}
"""Families of one instruction that the benchmark leaves out, and why."""


def test_every_family_of_instructions_is_timed():
    timed = set(runpy.run_path(str(FOLDER / "instruction_cases.py"))["NAMES"])
    families: dict[tuple[str, type], set[str]] = {}
    for name, kind in instructions().items():
        if kind.pipe is not Pipe.S and {"2201", "3510"} & set(kind.archs):
            families.setdefault((kind.__module__, kind.__mro__[1]), set()).add(name)
    left_out = [names for names in families.values() if not names & timed]
    assert [names for names in left_out if not names <= set(UNTIMED)] == []


def test_the_figures_of_kernels_stand_beside_their_targets():
    answer = answer_of("run_kernels.py", "0.01")
    assert answer["engines"] == {"fast": "lockstep", "reference": "reference"}
    figures = answer["figures"]
    at_least = {"kernel_issues_per_s"}
    checked = {"checks_on_over_off_lockstep", "checks_on_over_off_reference"}
    assert set(figures) == at_least | checked | {"trace_megabytes"}
    for name, figure in figures.items():
        value, target = figure["value"], figure["target"]
        assert value > 0
        assert figure["met"] == (value >= target if name in at_least else value <= target)


def test_the_figures_of_the_executor_stand_beside_their_targets():
    answer = answer_of("run_equal_cores.py", "0.02", "signals")
    assert set(answer["figures"]) == {"signals_over_plain", "checks_on_over_off_signals"}
    assert answer["figures"]["signals_over_plain"]["engine"] == "lockstep"
    for figure in answer["figures"].values():
        assert figure["met"] == (0 < figure["value"] <= figure["target"])


def test_the_figures_of_checks_are_ratios():
    answer = answer_of("checks.py", "1", "vector_add")
    (figures,) = answer["examples"].values()
    for engine in ("fast", "reference"):
        found = figures[engine]
        assert found["ratio"] == found["on_s"] / found["off_s"] > 0


def test_the_regret_of_a_plan_is_against_tilings_that_were_timed():
    answer = answer_of("regret.py", "1", "8")
    (row,) = answer["problems"]
    assert 0 < row["timed"] == answer["timed"] <= 8
    assert row["regret"] >= row["regret_of_best_shown"] >= 0
    assert answer["regret_most"] == row["regret"] == answer["figures"]["regret_mean"]["value"]
    assert bool(row["faster"]) == (row["regret"] > 0)


@pytest.mark.sweep
def test_every_command_s_start_stands_beside_its_target():
    answer = answer_of("startup.py", "1")
    assert answer["repeats"] == 1
    assert answer["numpy_seconds"] > 0
    assert set(answer["ratios"]) == {"help", "chips", "explain", "check", "plan", "time", "run"}
    assert all(ratio["value"] > 0 for ratio in answer["ratios"].values())
