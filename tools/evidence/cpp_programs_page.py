"""The page of public C++ kernels: counts of outcomes, obstacles, suites of operators."""

from collections import Counter
from typing import Any

from tools.evidence.cpp_programs import OUTCOMES, rows
from tools.evidence.suites.pages import sections


def page() -> str:
    """Return the page: counts by repository and layer, then the obstacles."""
    found = rows()
    lines = [
        "# Public C++ kernels",
        "",
        "Kernels of public repositories, unmodified, from checkouts outside of this repository;",
        "none of their text is part of it. A sample is built with cmake, run from its own main and",
        "verified by its own script; another file is compiled by itself, with stand-ins for the",
        "macros of its build, and its repository's headers wherever they lie. Files come in the",
        "order of a hash of their names, so that a part is a fair sample; what is not listed",
        "was not surveyed.",
        "",
        "| outcome | files | |",
        "|---|---|---|",
    ]
    counts = Counter(row["outcome"] for row in found)
    lines += [f"| {name} | {counts[name]} | {says} |" for name, says in OUTCOMES.items()]
    lines += _shares(found)
    lines += [
        "",
        "## By repository",
        "",
        "| repository | layer | outcome | files |",
        "|---|---|---|---|",
    ]
    groups = Counter((r["repo"], r["layer"], r["outcome"]) for r in found)
    lines += [f"| {' | '.join(key)} | {count} |" for key, count in sorted(groups.items())]
    lines += ["", "## Obstacles", "", "The first obstacle of each file or sample.", ""]
    lines += ["| obstacle | files |", "|---|---|"]
    obstacles = Counter(_shown(row["why"]) for row in found if row.get("why"))
    lines += [f"| {why} | {count} |" for why, count in sorted(obstacles.items(), key=_by_count)]
    lines += ["", *sections()]
    lines += ["`cpp_programs.py` and `suites/` in `tools/evidence` say how all is measured.", ""]
    return "\n".join(lines)


_NOT_FOR_A2 = frozenset({"another chip", "host test", "not here"})
_LAYERS = {"vector": "vector", "cube": "Cube and C API", "c-api": "Cube and C API"}
_LISTED = 91
"""Samples of the vendor's two repositories that the corpus lists without the Matmul object."""
_VENDORS = frozenset({"mirror-cann/asc-devkit", "hicann/cann-samples"})


def _shares(found: list[dict[str, Any]]) -> list[str]:
    """Return the lines on files and samples of A2: which share compiles, which verifies."""
    of_a2 = [row for row in found if row["outcome"] not in _NOT_FOR_A2]
    good = [row for row in of_a2 if row["outcome"].startswith(("verified", "compiles"))]
    everything, compiled = (
        Counter(_LAYERS.get(row["layer"], "Matmul object") for row in each)
        for each in (of_a2, good)
    )
    right = [row for row in good if row["outcome"].startswith("verified")]
    own = [r for r in right if r["repo"] in _VENDORS and r["layer"] in _LAYERS]
    late = sum(r.get("arch") == "3510" for r in own)
    lines = [
        "",
        "Of files for A2 and samples for 950, a sample that verifies among those that compile:",
        "",
    ]
    lines += ["| layer | files | compile | |", "|---|---|---|---|"]
    lines += [
        f"| {layer} | {count} | {compiled[layer]} | {100 * compiled[layer] / count:.0f} % |"
        for layer, count in sorted(everything.items())
    ]
    return [
        *lines,
        "",
        f"The corpus lists {_LISTED} whole samples of asc-devkit and cann-samples without the",
        "Matmul object (generated data, a main and a verification beside the kernel, or in the",
        f"project that it is a part of). {len(own)} of them verify, {late} of these as programs of",
        "Ascend 950, which their build or README names. With the older copy of asc-devkit in",
        f"LLM4AscendC, and with the Matmul object, {len(right)} samples verify.",
    ]


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _shown(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
