"""Published times of kernels of threads (SIMT) beside the rough time of the same programs.

`python -m tools.evidence.thread_times CHECKOUTS [--match REGEX]` times variants of the samples
whose pages state a time, in a folder with a checkout of asc-devkit. Outcomes go to
`thread_times.jsonl` beside this file: the published time, ours, and of kernels of threads alone
the work of the slowest core, from which a test makes our time again.
"""

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

from cubecore.answers.scripts import TimedLaunch
from cubecore.chips import chip
from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions
from cubecore.isa.vector.simt.thread_function import ThreadFunction
from cubecore.isa.vector.simt.thread_work import ThreadWork
from cubecore.workflows.scripts.script import time_script

DATA = Path(__file__).with_name("thread_times.jsonl")
CHIP = "Ascend950PR_9589"
_SIMT = "asc-devkit/examples/03_simt_api/"
_MIXED = "asc-devkit/examples/05_simd_simt_hybrid/02_best_practices/"


@dataclass(frozen=True)
class Sample:
    """A sample: its folder, its file, and the published times in us by variants.

    A variant is the macro SCENARIO_NUM, unless `edit` names another text of the file, with {} where
    the variant stands; `arguments` are those of the program. `launch` is the one that is timed. The
    times are those of a program whose text has `smaller` in it, divided by its factor.
    """

    folder: str
    file: str
    times: Mapping[str, float]
    edit: tuple[str, str] = ("", "#define SCENARIO_NUM {}\n")
    arguments: Mapping[str, str] = field(default_factory=dict)
    launch: int = 0
    smaller: tuple[str, str, int] = ("", "", 1)


def _numbered(first: int, *us: float) -> dict[str, float]:
    return {str(number): value for number, value in enumerate(us, first)}


_EMPTY = (1.455, 1.589, 2.160, 3.373, 15.996)
_CONFIG = "01_execution_conf_optimizations"
_GRID = f"{_CONFIG}/grid_dim_config"
_MEMORY = "03_best_practices/00_memory_optimizations/"
_ALIGNED = {  # in the order of the program
    "Align4": 27889.33, "Misalign4": 81223.02, "Align2U16": 27833.56, "Misalign2U16": 46656.61,
    "Align8": 17417.23, "Misalign8": 21287.91, "Align16": 32983.77, "Misalign16": 38353.60,
    "Align32": 60901.24, "Misalign32": 77790.93, "AlignU8U16": 27854.56,
    "MisalignU8U16": 46666.11, "AlignU8PadU16": 27809.72, "MisalignU8PadU16": 46664.42,
}  # fmt: skip
SAMPLES = {
    "launch and gather": Sample(
        f"{_SIMT}03_best_practices/{_GRID}",
        "grid_config.asc",
        _numbered(1, *_EMPTY, 78.289, 58.583, 110.540, 10.831, 6.569, 4.500, 3.696, 4.133),
    ),
    "launch and gather, mixed": Sample(
        f"{_MIXED}simd_simt_grid_dim_config",
        "grid_config.asc",
        _numbered(
            1, *_EMPTY, 1.780, 2.327, 16.598, 78.921, 59.109, 110.540,
            10.760, 6.741, 4.514, 3.866, 4.115,
        ),
    ),
    "transpose": Sample(
        f"{_SIMT}{_MEMORY}matrix_transpose_practice",
        "matrix_transpose.asc",
        _numbered(0, 6.262, 8.649, 36.337, 28.190, 27.113, 23.912, 15.152, 12.074),
    ),
    "transpose, mixed": Sample(
        f"{_MIXED}simd_simt_matrix_transpose",
        "matrix_transpose.asc",
        _numbered(0, 36.263, 23.732, 18.697, 11.596, 6.831),
    ),
    "short vectors": Sample(
        f"{_SIMT}{_MEMORY}short_vector_add", "short_vector_add.asc", _numbered(1, 86.478, 45.371)
    ),
    "cache hints": Sample(
        f"{_SIMT}{_MEMORY}cache_hint", "data_cache_hint.asc", _numbered(0, 56.82, 50.895)
    ),
    "alignment": Sample(
        f"{_SIMT}{_MEMORY}aligned_types",
        "aligned_types.asc",
        _ALIGNED,
        smaller=("512ULL * 1024ULL", "4ULL * 1024ULL", 128),
    ),
    "divergence": Sample(
        f"{_SIMT}03_best_practices/02_control_flow/warp_divergence",
        "spmv.asc",
        _numbered(1, 81.811, 31.772),
    ),
    "registers": Sample(
        f"{_SIMT}03_best_practices/{_CONFIG}/max_thread_config/sincos_compute",
        "sincos_compute.asc",
        {"1024": 102.47, "512": 96.22},
        arguments={"1024": "1024", "512": "512"},
    ),
    "atomics": Sample(
        f"{_SIMT}02_features/01_api_features/02_atomic_operation/atomic_add_perf",
        "atomic_add_perf.asc",
        _numbered(
            1, 87.60, 1.84, 351.47, 2.25, 421.59, 159.88, 3.17, 2.76,
            15.54, 111.30, 2233.62, 2136.16, 9.29, 61.10, 1120.19, 2135.92,
        ),
    ),
    "division": Sample(
        f"{_MIXED}simd_simt_integer_fast_div", "integer_div.asc", _numbered(0, 117.229, 103.889)
    ),
    "remainder": Sample(
        f"{_MIXED}simd_simt_high_performance",
        "floor_mod.asc",
        _numbered(0, 812.063, 525.736, 538.098, 463.179),
    ),
}  # fmt: skip


def rows() -> list[dict[str, Any]]:
    """Return what was timed, in the order of the samples and of their variants."""
    lines = DATA.read_text("utf-8").splitlines() if DATA.is_file() else []
    order = {
        (name, variant): number
        for number, (name, variant) in enumerate(
            (name, variant) for name, sample in SAMPLES.items() for variant in sample.times
        )
    }
    return sorted(map(json.loads, lines), key=lambda row: order[row["sample"], row["variant"]])


def predicted_us(row: Mapping[str, Any]) -> float:
    """Return our time of a row: made again from its work, where threads alone have run."""
    if row["work"] is None:
        return float(row["predicted_us"])
    of_chip = chip(CHIP)
    cycles = ThreadWork(**row["work"]).cycles(of_chip) + row["launch_cycles"]
    return 1e6 * float(cycles) / float(of_chip.require("frequency_hz", "the time of threads"))


def pairs(of: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield the pairs of variants of one sample: it, both, and whether our order is right."""
    for one, other in combinations(list(of), 2):
        if one["sample"] != other["sample"] or one["us"] == other["us"]:
            continue
        right = (predicted_us(one) - predicted_us(other)) * (one["us"] - other["us"]) > 0
        yield one["sample"], one["variant"], other["variant"], right


def median_error(of: Iterable[Mapping[str, Any]]) -> float:
    """Return the median of how far our times are off, as a share."""
    return median(abs(predicted_us(row) / row["us"] - 1) for row in of)


def _work_of(launch: TimedLaunch) -> ThreadWork | None:
    """Return the work of the slowest core of a launch; None where not only threads ran."""
    works = []
    for trace in launch.run.traces.values():
        kinds = [trace.templates[kind] for kind in trace.kinds]
        if not all(isinstance(kind, ThreadFunction) for kind in kinds):
            return None
        of_core = [kind.work for kind in kinds if kind.work is not None]
        names = [each.name for each in fields(ThreadWork)]
        if len(of_core) > 1:  # shared lines: each call waits for its own
            return None
        works += [
            ThreadWork(**{name: sum(getattr(work, name) for work in of_core) for name in names})
        ]
    return max(works, key=lambda work: work.cycles(launch.run.chip))


def timed(checkouts: Path, name: str, variant: str) -> Sequence[TimedLaunch]:
    """Return the launches of a variant, timed."""
    sample = SAMPLES[name]
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "sample"
        shutil.copytree(checkouts / sample.folder, copy)
        file = copy / sample.file
        before, after = sample.edit
        text = file.read_text("utf-8").replace(*sample.smaller[:2], 1 if sample.smaller[0] else 0)
        file.write_text(text.replace(before, after.format(variant), 1), "utf-8")
        home = Path.cwd()
        os.chdir(copy)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                argument = sample.arguments.get(variant)
                return time_script(
                    str(file),
                    arguments=() if argument is None else (argument,),
                    chip=CHIP,
                    asked=CppLaunchOptions(timeout_s=600),
                ).launches
        finally:
            os.chdir(home)


def surveyed(checkouts: Path, match: str) -> Iterator[dict[str, Any]]:
    """Yield the row of each variant of the samples whose names match."""
    for name, sample in SAMPLES.items():
        if not re.search(match, name):
            continue
        launches: Sequence[TimedLaunch] = ()
        for number, (variant, us) in enumerate(sample.times.items()):
            of_one_program = sample.smaller[0] != ""
            if not (of_one_program and launches):
                try:
                    launches = timed(checkouts, name, variant)
                except Exception as error:  # noqa: BLE001 - a survey tells what fails
                    print(name, variant, str(error)[:200], flush=True)
                    continue
            launch = launches[number if of_one_program else sample.launch]
            work = _work_of(launch)
            cycles = 0 if work is None else launch.timeline.cycles - work.cycles(launch.run.chip)
            yield {
                "sample": name,
                "variant": variant,
                "kernel": launch.run.kernel,
                "us": round(us / sample.smaller[2], 3),
                "predicted_us": round(launch.timeline.us, 3),
                "launch_cycles": cycles,
                "work": None if work is None else asdict(work),
            }


def main() -> None:
    """Time samples, write what was found, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--match", default="")
    for row in surveyed(**vars(parser.parse_args())):
        print(row["sample"], row["variant"], row["us"], row["predicted_us"], flush=True)
        key = row["sample"], row["variant"]
        kept = [each for each in rows() if (each["sample"], each["variant"]) != key]
        DATA.write_text("".join(json.dumps(each) + "\n" for each in [*kept, row]), "utf-8")
    right = [each for *_, each in pairs(rows())]
    print(f"{sum(right)} of {len(right)} pairs in order, off by {median_error(rows()):.0%}")


if __name__ == "__main__":
    main()
