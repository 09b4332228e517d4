"""The event timing against published measurements of matmul_high_performance (asc_mmhp_*).

usage: measured.py POINTS.jsonl

Prints one Markdown row for each record: predicted against measured, in total and for each pipe, or
why it is not timed. What a record leaves open is filled in and said so.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cubecore.chips import chip
from cubecore.errors import CubecoreError
from cubecore.tiling.problem import Problem
from cubecore.tiling.struct import FIELDS, TCubeTiling
from cubecore.units import ceil_div
from cubecore.workflows.time import time

PIPES = {"M": "aic_mac_us", "MTE1": "aic_mte1_us", "MTE2": "aic_mte2_us", "FIX": "aic_fixpipe_us"}


@dataclass(frozen=True)
class Case:
    """A record as a tiling, with what had to be assumed."""

    problem: Problem
    tiling: TCubeTiling
    step: str
    assumed: tuple[str, ...]


def mapped(record: dict[str, Any]) -> Case:
    """Return the record as a runnable case."""
    known = record["tiling"]
    name = known["template"]
    assumed = []
    rounds = 1
    single_m = known.get("singleM", record["M"])
    if isinstance(single_m, str):
        rounds, single_m = (int(x) for x in single_m.split("x"))
        assumed.append(f"{rounds} rounds of {single_m} rows as one block")
    single_m *= rounds
    single_n = known.get("singleN", record["N"])
    norm = name.startswith("NORM")
    step_a, step_b = known.get("stepKa", 1), known.get("stepKb", known.get("stepKa", 1))
    if norm:
        assumed.append("NORM as MDL of depth 1, without unit flag")
    elif "depthB1" not in known:
        assumed.append("B's depth and step as A's")
    if "UnitFlag" in name and not norm:
        assumed.append("without unit flag")
    depth = 1 if norm else 2
    buffers = 1 if norm and record["cores"] == 1 else 2
    fields = dict.fromkeys(FIELDS, 0) | {
        "usedCoreNum": ceil_div(record["M"], single_m) * ceil_div(record["N"], single_n),
        "M": record["M"],
        "N": record["N"],
        "Ka": record["K"],
        "Kb": record["K"],
        "singleCoreM": single_m,
        "singleCoreN": single_n,
        "singleCoreK": record["K"],
        "baseM": known["baseM"],
        "baseN": known["baseN"],
        "baseK": known["baseK"],
        "stepM": 1,
        "stepN": 1,
        "stepKa": step_a,
        "stepKb": step_b,
        "depthA1": step_a * depth,
        "depthB1": step_b * depth,
        "dbL0A": buffers,
        "dbL0B": buffers,
        "dbL0C": 1,
    }
    step = "NORM" if norm else "CONSTANT" if "constant" in name else "MDL"
    trans_a, trans_b = (part.endswith("T") for part in record["trans"].split())
    problem = Problem.from_json(
        {
            "chip": record["chip"],
            "m": record["M"],
            "n": record["N"],
            "k": record["K"],
            "a": record["dtype_a"],
            "b": record["dtype_b"],
            "c": record["dtype_c"],
            "trans_a": trans_a,
            "trans_b": trans_b,
        }
    )
    return Case(problem, TCubeTiling(**fields), step, tuple(assumed))


def rows(points: Path) -> Iterator[tuple[str, ...]]:
    """Yield (id, measured us, predicted us, error, pipe errors, remark)."""
    for line in points.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if not record["id"].startswith("asc_mmhp_"):
            continue
        measured = record["measured"]["total_us"]
        try:
            chip(record["chip"])
            case = mapped(record)
            timed = time(case.problem, tiling=case.tiling, step=case.step)
        except CubecoreError as error:
            yield (record["id"], f"{measured:.0f}", "", "", "", f"not timed: {error}")
            continue
        line_ = timed.timeline
        clock = timed.request.chip.microseconds
        pipes = []
        for pipe, key in PIPES.items():
            predicted, real = clock(line_.pipes[pipe]), record["measured"].get(key)
            if predicted is not None and real:
                pipes.append(f"{pipe} {predicted / real - 1:+.0%}")
        yield (
            record["id"],
            f"{measured:.0f}",
            f"{line_.us:.0f}",
            f"{line_.us / measured - 1:+.1%}",
            ", ".join(pipes),
            "; ".join(case.assumed),
        )


def main() -> None:
    """Print the table."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    print("| record | measured us | predicted us | error | pipes | assumed |")
    print("|---|---|---|---|---|---|")
    for row in sorted(rows(Path(sys.argv[1]))):
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
