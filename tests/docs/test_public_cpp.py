"""The page of public C++ kernels, and its obstacles."""

from collections import Counter

import pytest
from tools.evidence.cpp_programs import OUTCOMES, obstacle, rows
from tools.evidence.cpp_programs_page import page

OBSTACLES = {
    "/a/b.cpp:7: AscendC::Gelu is not supported": "Gelu",
    "b.cpp:7 does not compile: 'SortConfig' was not declared in this scope": "SortConfig",
    "b.cpp:7 does not compile: 'AscendC::Pattern' has not been declared; x": "Pattern",
    "b.cpp:7 includes lib/a/sin.h, which is neither beside it nor ...": "header sin.h",
    "b.cpp:7 does not compile: no match; --verbose shows everything": "no match",
    "core 3: 12345 B": "core 3: N B",
}


@pytest.mark.parametrize("said", OBSTACLES)
def test_an_obstacle_is_a_name_where_one_is_missing(said):
    assert obstacle(said) == OBSTACLES[said]


def test_every_file_has_an_outcome_and_a_refused_one_an_obstacle():
    found = rows()
    assert found
    assert len({(row["repo"], row["path"]) for row in found}) == len(found)
    assert {row["outcome"] for row in found} <= set(OUTCOMES)
    assert all(row.get("why") for row in found if row["outcome"] in {"refused", "failed"})


def test_the_page_counts_its_rows():
    text = page()
    for outcome, count in Counter(row["outcome"] for row in rows()).items():
        assert f"| {outcome} | {count} |" in text
