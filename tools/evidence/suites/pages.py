"""The sections on suites of the page of public C++ kernels."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tools.evidence import cpp_programs
from tools.evidence.suites.judged import judged_section
from tools.evidence.suites.mutants import SUITE as MUTANTS
from tools.evidence.suites.packages import CPU_S
from tools.evidence.suites.results import rows

BENCHMARKS = ("weich97/NPUKernelBench",)
PACKAGES = ("CenZhihan/LLM4AscendC",)
TASK_OUTCOMES = {
    "verified": "every case that was run is within the benchmark's tolerance",
    "verified, findings": "as above, and the sanitizer reported findings",
    "wrong": "a case is not within the tolerance, whatever the others came to",
    "refused": "a name is not provided, or the operator or its kernel refuses the case",
    "raised": "the benchmark's own code raised",
    "no case": "each case has a tensor above the cap",
    "late": "the task took more than its time",
    "crash": "the runner ended",
}
PACKAGE_OUTCOMES = {
    "clean": "runs on small inputs, without findings",
    "findings": "runs, and the sanitizer reported findings",
    "does not compile": "the op_host or the kernel does not compile, or a name is not provided",
    "refused": "shape inference, tiling function or a rule of an instruction refuses the inputs",
    "deadlock": "cores wait for each other",
    "endless": "the kernel or the tiling function did not end",
    "crash": "the operator's own code ended with a signal",
    "no package": "the file holds no operator project",
    "late": "no verdict in time",
    "crash of ours": "no verdict",
}
MUTANT_OUTCOMES = {
    "reported": "a result changes in some order of the pipes, and a check reports the fault",
    "missed": "a result changes in some order, and nothing is reported",
    "no change": "no order that was tried changes a result",
    "does not compile": "not counted",
    "does not verify": "not counted: the sample as it is does not verify on the machine",
    "nothing to remove": "not counted",
}


def sections() -> list[str]:
    """Return the lines of the sections, of suites that were run."""
    lines: list[str] = []
    for suite in BENCHMARKS:
        found = rows(suite)
        if found:
            lines += _benchmark(suite, found)
    for suite in PACKAGES:
        found = rows(suite)
        if found:
            lines += _packages(suite, found)
    found = rows(MUTANTS)
    if found:
        lines += _mutants(found)
    right = [r for r in [*cpp_programs.rows(), *rows(BENCHMARKS[0])] if "verified" in r["outcome"]]
    return lines + judged_section(len(right))


def _benchmark(suite: str, found: list[dict[str, Any]]) -> list[str]:
    cases = sum((Counter(row["cases"]) for row in found), Counter[str]())
    return [
        f"## Benchmark {suite}",
        "",
        "Reference answers on the benchmark's own cases, references and tolerance, tensors of",
        "at most 16 MB, the small cases first for a few CPU seconds a task:",
        f"{cases['verified'] + cases['right']} cases verified, {cases['wrong']} wrong, ",
        f"{cases['refused']} refused, {cases['too large']} above the cap, ",
        f"{cases['no time'] + cases['late'] + cases['not run']} not run, and",
        f"{cases['not comparable'] + cases['uncomparable']} whose own reference its check does not "
        "accept.",
        "",
        *_table("tasks", Counter(row["outcome"] for row in found), TASK_OUTCOMES),
        *_obstacles("task", found),
    ]


def _packages(suite: str, found: list[dict[str, Any]]) -> list[str]:
    kinds = Counter(kind for row in found for kind in row.get("findings", ()))
    most = max(row["cpu_s"] for row in found)
    left = sum(bool(row.get("left_over")) for row in found)
    return [
        f"## Machine-written operators of {suite}",
        "",
        f"The first {len(found)} packages in the order of a hash of their names, on small inputs",
        "of the types that they register. None of them is known to be right. The verdicts took at",
        f"most {most:.0f} s of CPU each (limit {CPU_S:.0f}); {left} left a process behind.",
        "",
        *_table("packages", Counter(row["outcome"] for row in found), PACKAGE_OUTCOMES),
        "",
        "Of those that run, what was wrong:",
        "",
        "| finding | packages |",
        "|---|---|",
        *(f"| {kind} | {count} |" for kind, count in sorted(kinds.items(), key=_by_count)),
        *_obstacles("package", found),
    ]


def _mutants(found: list[dict[str, Any]]) -> list[str]:
    counts = Counter(row["outcome"] for row in found)
    changed = counts["reported"] + counts["missed"]
    share = f"{100 * counts['reported'] / changed:.0f} %" if changed else "none"
    return [
        "## Mutants of samples",
        "",
        "Samples that verify, each without one flag, barrier or call of a queue, drawn by a seed,",
        f"run in five orders of the pipes. Of {changed} that change a result {share} are reported.",
        "",
        *_table("mutants", counts, MUTANT_OUTCOMES),
        "",
    ]


def _table(what: str, counts: Mapping[str, int], says: Mapping[str, str]) -> Iterable[str]:
    yield f"| outcome | {what} | |"
    yield "|---|---|---|"
    for name, words in says.items():
        if counts.get(name):
            yield f"| {name} | {counts[name]} | {words} |"


def _obstacles(what: str, found: list[dict[str, Any]]) -> Iterable[str]:
    counts = Counter(_shown(row["why"]) for row in found if row.get("why"))
    yield from ("", f"The first obstacle of each {what}:", "")
    yield f"| obstacle | {what}s |"
    yield "|---|---|"
    for why, count in sorted(counts.items(), key=_by_count):
        yield f"| {why} | {count} |"
    yield ""


def _shown(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]
