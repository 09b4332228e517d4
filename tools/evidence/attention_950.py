"""Public attention of Ascend 950 beside its published times, for the cost of a flag between cores.

`python -m tools.evidence.attention_950 FOLDER [--cycles N]` takes the folder in which programs of
cann-samples' flash_attn_lite_story were built, times each at three lengths, and prints the cycles
of a tile of keys beside those published. v2 hands over four times a tile, without overlap: the
constant is what makes it right; the others are held out.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

PUBLISHED_US = {"v2": 113837.03, "v3": 75413.80, "v4": 51068.41, "v5": 46974.51, "v8": 21263.84}
"""Times of 131,072 queries and keys, one head of 128, on 32 AICs."""
TILES, MHZ = 1024, 1650
"""Tiles of keys of a task, which are tasks of a core times 32, too."""
LENGTHS = (256, 512, 1024)
_CYCLES = re.compile(r"\(([\d,]+) cycles\), limited by")


def timed(program: Path, length: int, cycles: int | None) -> int:
    """Return the cycles of a launch on one core."""
    what_if = () if cycles is None else ("--set", f"cross_core_cycles={cycles}")
    given = ("--dry-run", "--core-num", "1", "--size", "1", str(length))
    words = ("time", str(program), "--chip", "Ascend950PR_9589", *what_if, "--", *given)
    done = subprocess.run(
        [sys.executable, "-m", "cubecore", *words], capture_output=True, text=True, check=False
    )
    found = _CYCLES.search(done.stdout)
    if found is None:
        raise SystemExit(f"{program}: {done.stderr.strip()}")
    return int(found[1].replace(",", ""))


def tile_cycles(program: Path, cycles: int | None) -> float:
    """Return the cycles of a tile in a long launch: by tiles, tasks and launches."""
    counts = [length // 128 for length in LENGTHS]
    rows = np.array([[count * count, count, 1] for count in counts], float)
    times = [timed(program, length, cycles) for length in LENGTHS]
    tile, task, _ = np.linalg.solve(rows, np.array(times, float))
    return float(tile + task / TILES)


def main() -> None:
    """Print a line for each program that is in the folder."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cycles", type=int)
    asked = parser.parse_args()
    for name, published_us in PUBLISHED_US.items():
        program = asked.folder / f"falite_{name}"
        if not program.is_file():
            continue
        published = published_us * MHZ / (TILES * TILES // 32)
        predicted = tile_cycles(program, asked.cycles)
        print(f"{name}: {predicted:.0f} cycles a tile, {published:.0f} published,", end=" ")
        print(f"{100 * (predicted / published - 1):+.1f} %", flush=True)


if __name__ == "__main__":
    main()
