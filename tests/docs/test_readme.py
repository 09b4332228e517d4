"""The figures that the README states are those of the catalogue and of the validation."""

import re
from pathlib import Path

from cubecore.chips import chip_names
from cubecore.isa.catalogue import instructions
from cubecore.workflows.request import RUNNABLE_ARCHS, TIMED_ARCHS

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


def test_accuracy_is_stated_once_and_as_measured():
    stated = re.findall(
        r"(\d+) published measurements of known tilings its error is (\S+) \(median\) and (\S+) "
        r"\(90th percentile\)",
        TEXT,
    )
    table = (ROOT / "docs/validation.md").read_text(encoding="utf-8")
    row = re.search(r"^\| known: [^|]*\| (\S+) \| (\S+) \| (\S+) \|$", table, re.MULTILINE)
    assert stated == [row.groups()]
    assert "%" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
