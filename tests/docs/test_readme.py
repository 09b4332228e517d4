"""The figures that the README states are those of the catalogue and of the validation."""

import re
from pathlib import Path

import pytest

import cubecore
from cubecore.chips import chip_names
from cubecore.frontends.capi.core_handle import CoreHandle
from cubecore.isa.catalogue import instructions
from cubecore.kernels.runnable import RUNNABLE_ARCHS, TIMED_ARCHS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_counts_of_instructions():
    found = re.search(
        r"(\d+) instructions \((\d+) on architecture 2201, (\d+) on 3510\)", TEXT
    ).groups()
    kinds = instructions().values()
    by_arch = [sum(arch in kind.archs for kind in kinds) for arch in ("2201", "3510")]
    assert [int(n) for n in found] == [len(kinds), *by_arch]


def test_count_of_chips_and_architectures_that_run():
    assert int(re.search(r"(\d+) SoCs", TEXT)[1]) == len(chip_names())
    text = r"`time` on architectures (\d+) .*? and (\d+) .*?, `run` on (\d+) and (\d+)"
    (archs,) = re.findall(text, TEXT)
    assert archs == RUNNABLE_ARCHS
    assert archs[:2] == TIMED_ARCHS


@pytest.mark.parametrize("soc", chip_names())
@pytest.mark.thinned(12)
def test_check_and_plan_work_on_every_chip(soc):
    assert "`check` works on all, `plan` where a source gives the Cube's rate" in TEXT
    problem = {"m": 16, "n": 16, "k": 16, "c": "float16", "chip": soc}
    assert cubecore.check(cubecore.plan(**problem).tiling, **problem).legal


def test_the_manual_says_which_names_of_the_basic_api_are_called():
    intro = (ROOT / "docs/instructions.md").read_text(encoding="utf-8").split("\n## ")[0]
    assert "by its name in the\nC API, and by these of the basic API: Mmad." in intro
    assert [hasattr(CoreHandle, name) for name in ("Mmad", "MmadMx", "LoadData")] == [
        True,
        False,
        False,
    ]


def test_accuracy_is_stated_once_and_as_measured():
    """The headline is the error held out, beside the one in sample."""
    stated = re.findall(
        r"held out of its fit its error is (\S+) \(median\) and (\S+) \(90th percentile\) for "
        r"(\d+) matmuls of known tilings, (\S+) and (\S+) in sample; matmuls of libraries (\S+),",
        TEXT,
    )
    table = (ROOT / "docs/validation.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (products[^|\d]*) \| (\d.*) \|$", table, re.MULTILINE))
    count, shipped, _, held, _ = rows["products, tiling published"].split(" | ")
    library = rows["products of libraries"].split(" | ")[3]
    expected = (*held.split(", "), count, *shipped.split(", "), library.split(", ")[0])
    assert stated == [expected]
    assert "%" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
