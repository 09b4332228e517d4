"""Fits the timing model's constants automatically, on all publications and without each of them.

`python -m tools.calibration.refit [ARCH...]` writes refitted.json here, left_out.json and
held_out.json beside the measured points; with `--ship` it then writes what it found on all points
into the files of the architectures. It starts from documented or round figures, not from the
shipped ones, plans products of unpublished tilings with them, and takes no random step: the same
points give the same files. Loads, micro-benchmarks and launches stay where their publication is
left out: they are made to identify constants.

The fit is that of tools/calibration/fitting.py; it ends where no step helps. `--go-on` begins where
the last fit on all ended, stays there, and leaves the fits without a publication as they are.
"""

import dataclasses
import gc
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.calibration.fit_cases import (
    HALVES,
    REFITTED,
    UNSEEN,
    fit_cases,
    operator_half,
    refitted,
    unseen_cases,
)
from tools.calibration.fitting import OF_VECTOR_CORES, Cases, Fit, case_rows, depends
from tools.calibration.held_out import main as record_held_out
from tools.calibration.held_out import residuals_of

from cubecore.advice.intervals import LEFT_OUT

STARTS: Mapping[str, Mapping[str, float]] = {
    "2201": {
        "hbm_bytes_per_second": 1.6e12,  # the vendor's page on L2 splitting
        "hbm_row_bytes": 32,
        "hbm_ub_row_bytes": 32,
        "hbm_slack_cycles": 5000,
        "hbm_latency_cycles": 500,
        "hbm_ub_latency_cycles": 500,
        "l2_latency_cycles": 100,
        "l2_write_reach": 1.0,
        "hbm_write_weight": 1.0,
        "gm_to_l1_bytes_per_cycle": 110,  # configuration file
        "gm_to_l1_transfer_cycles": 21,  # small copies, limited by their issue
        "gm_to_l1_lone_row_cycles": 100,
        "gm_to_l1_row_cycles": 1.0,
        "gm_to_l1_pitch_row_cycles": 1.0,
        "gm_miss_bytes_per_cycle": 32,  # configuration file
        "gm_to_l1_misaligned_block_cycles.*": 0.5,
        "gm_to_ub_bytes_per_cycle": 110,  # configuration file
        "gm_miss_ub_bytes_per_cycle": 32,
        "gm_to_ub_transfer_cycles": 50,
        "ub_to_gm_bytes_per_cycle": 64,  # configuration file
        "l1_to_l0_head_cycles": 28,  # appendix: LoadData 2D
        "l1_to_l0_queued_cycles": 10,
        "l1_to_l0_contention": 0.1,
        "mad_head_cycles": 21,  # the vendor's roofline of Mmad
        "mad_queued_cycles": 10,
        "l0c_to_gm_bytes_per_cycle": 64,
        "l0c_to_gm_row_cycles": 1.0,
        "vector_head_cycles": 24,  # head and tail in a public cost model
        "scalar_step_cycles.NORM": 400,  # a step and its two loads, as MDL's
        "scalar_step_cycles.MDL": 200,
        "scalar_step_cycles.CONSTANT": 100,
        "scalar_step_cycles.BASIC": 100,
        "scalar_load_cycles.MDL": 100,
        "scalar_load_cycles.CONSTANT": 100,
        "scalar_load_cycles.BASIC": 50,
        "scalar_tile_cycles.MDL": 300,
        "scalar_tile_cycles.CONSTANT": 300,
        "start_cycles": 8400,  # a launch of 10,900 in a public cost model, less launch_cycles
        "short_start_cycles.CONSTANT": 5000,
        "short_start_cycles.BASIC": 8400,  # the same
        "short_start_cycles.VECTOR": 2000,
        "launch_cycles": 2500,  # that of 950
        "loop_gap_cycles": 5000,
    },
    "3510": {
        "hbm_bytes_per_second": 1.6e12,  # the vendor's matmul README
        "hbm_ub_row_bytes": 32,
        "hbm_slack_cycles": 5000,
        "hbm_latency_cycles": 500,
        "hbm_ub_latency_cycles": 500,
        "l2_latency_cycles": 100,
        "l2_write_reach": 1.0,
        "hbm_write_weight": 1.0,
        "gm_to_l1_bytes_per_cycle": 100,  # configuration file
        "gm_to_l1_transfer_cycles": 39,  # small copies, limited by their issue
        "gm_to_l1_row_cycles": 0.1,
        "gm_to_l1_turned_row_cycles": 1.0,
        "gm_miss_bytes_per_cycle": 31,  # configuration file
        "gm_to_ub_bytes_per_cycle": 100,  # configuration file
        "gm_miss_ub_bytes_per_cycle": 32,
        "gm_to_ub_transfer_cycles": 50,
        "ub_to_gm_bytes_per_cycle": 42,  # configuration file
        "l1_to_l0_head_cycles": 30,  # appendix: LoadData 2D
        "l1_to_l0_queued_cycles": 10,
        "l1_to_l0_contention": 0.1,
        "mad_head_cycles": 25,  # the vendor's roofline of Mmad
        "mad_queued_cycles": 10,
        "l0c_to_gm_bytes_per_cycle": 64,
        "l0c_to_gm_row_cycles": 1.0,
        "l0c_to_gm_misaligned_row_cycles": 10,
        "vector_head_cycles": 35,  # start-up and drain in a public cost model
        "scalar_step_cycles.NORM": 400,  # a step and its two loads, as MDL's
        "scalar_step_cycles.MDL": 200,
        "scalar_step_cycles.CONSTANT": 100,
        "scalar_step_cycles.BASIC": 100,
        "scalar_load_cycles.MDL": 100,
        "scalar_load_cycles.CONSTANT": 100,
        "scalar_load_cycles.BASIC": 50,
        "scalar_tile_cycles.MDL": 300,
        "scalar_tile_cycles.CONSTANT": 300,
        "start_cycles": 5000,
        "short_start_cycles.CONSTANT": 5000,
        "short_start_cycles.BASIC": 5000,
        "short_start_cycles.VECTOR": 2000,
        "launch_cycles": 2500,  # empty kernels take 1.5 us
    },
}
"""Where fits start. Figures without a source are round: they stand for not knowing."""
DOCUMENTED = (
    *("hbm_bytes_per_second", "gm_to_l1_bytes_per_cycle", "gm_miss_bytes_per_cycle"),
    *("gm_to_ub_bytes_per_cycle", "ub_to_gm_bytes_per_cycle"),
    *("l1_to_l0_head_cycles", "mad_head_cycles", "vector_head_cycles"),
    "gm_to_l1_transfer_cycles",
)
"""Constants whose starts have a source: the fit leaves these less lightly."""

# --- what was found, in the chips' files

FILES = Path(__file__).resolve().parents[2] / "src" / "cubecore" / "chips" / "data"
SOURCE = "refit"
GARBAGE = 300_000
"""Objects that are made before garbage is looked for: a launch leaves many that know each other."""


def shipped(text: str, values: Mapping[str, float]) -> str:
    """Return an architecture's file with other values, their source the fit."""
    tables: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        field, _, key = name.partition(".")
        tables.setdefault(field, {})[key] = value
    lines = [_line(line, tables) for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def _line(line: str, tables: Mapping[str, Mapping[str, float]]) -> str:
    field = line.partition(" = ")[0]
    if field not in tables or "value" not in line:
        return line
    for key, value in tables[field].items():
        line = _scaled(line, value) if key == "*" else _valued(line, key or "value", value)
    return re.sub(r'source = "\w+"', f'source = "{SOURCE}"', line)


def _valued(line: str, name: str, value: float) -> str:
    """Return a line with another number behind a name."""
    return re.sub(
        rf"\b{name} = (-?[\d._]+)", lambda found: f"{name} = {_as(found[1], value)}", line
    )


_LARGE = 100_000
"""Whole numbers from here on are written with separators."""


def _as(old: str, value: float) -> str:
    """Return a value as the old one is written: a whole number where that is one."""
    whole = max(round(value), 1)
    return f"{value:.4g}" if "." in old else f"{whole:_}" if whole >= _LARGE else str(whole)


def _scaled(line: str, value: float) -> str:
    """Return a table's line with its values in proportion, the first being `value`."""
    table = re.search(r"value = \{(.*?)\}", line)
    assert table is not None
    entries = [entry.split(" = ") for entry in table[1].strip().split(", ")]
    first = float(entries[0][1])
    scaled = ", ".join(f"{k.strip()} = {float(v) * value / first:.3g}" for k, v in entries)
    return line.replace(table[1], f" {scaled} ")


def half_fits(arch: str, found: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return the constants of vector cores fitted on half of the operators beside other kernels.

    The other constants are those found on all.
    """
    start = {n: value for n, value in STARTS[arch].items() if n.startswith(OF_VECTOR_CORES)}
    fixed = {name: value for name, value in found.items() if name not in start}
    operators = [one for one in unseen_cases() if one.case.chip.arch == arch]
    operators = [one for one in operators if one.errors(found)[0] is not None]
    cases = [one for one in fit_cases() if one.case.chip.arch == arch] + operators
    cases = [one for one in cases if any(depends(one, name) for name in start)]
    fits = {}
    for half, name in enumerate(HALVES):
        chosen = [
            one
            for one in cases
            if one.case.group not in UNSEEN or operator_half(one.point.op) == half
        ]
        with Cases(chosen) as timed:
            fits[name] = fixed | Fit(start, timed, DOCUMENTED, fixed).on_all()
    return fits


def main(arguments: list[str]) -> None:
    """Fit the architectures that are named, or all; keep what the file has of the others."""
    unknown = set(arguments) - {"--ship", "--go-on", *STARTS}
    if unknown:
        sys.exit(f"refit takes {', '.join(STARTS)}, --ship and --go-on, got {min(unknown)!r}")
    ship, goes_on = ("--ship" in arguments), ("--go-on" in arguments)
    chosen = [name for name in arguments if name in STARTS]
    found = refitted()
    for arch, start in STARTS.items():
        if chosen and arch not in chosen:
            continue
        cases = [one.planned(start) for one in fit_cases() if one.case.chip.arch == arch]
        for one in cases:
            case_rows(one, start)  # the programs stay with the processes that are made next
        gc.freeze()  # the cases stay: looking for garbage among them takes half of the time
        gc.set_threshold(GARBAGE)
        with Cases(cases) as timed:
            fit = Fit(start, timed, DOCUMENTED)
            found[arch][""] = fit.on_all(found[arch][""] if goes_on else None)
            if not fit.ended:
                print(f"{arch}: the fit has not ended")
            for source in () if goes_on else sorted(set(fit.origins[~fit.stays].tolist())):
                found[arch][source] = fit.without(source)
        found[arch] |= half_fits(arch, found[arch][""])
        text = json.dumps(dict(sorted(found.items())), indent=1)
        REFITTED.write_text(text + "\n", encoding="utf-8")
        if ship:
            file = FILES / f"arch_{arch}.toml"
            file.write_text(shipped(file.read_text("utf-8"), found[arch][""]), encoding="utf-8")
    rows = [json.dumps(dataclasses.astuple(one)) for one in residuals_of(found)]
    text = ",\n".join(rows)
    LEFT_OUT.write_text(f"[\n{text}\n]\n", encoding="utf-8")
    record_held_out()


if __name__ == "__main__":
    main(sys.argv[1:])
