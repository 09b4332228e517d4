"""python -m fuzz: every trial; exit code 1 if one failed."""

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

from fuzz.disks import try_full_disks, try_killed_outputs, try_kills, try_writers
from fuzz.inputs import FORMATS, try_files, try_stores
from fuzz.judge import Tally
from fuzz.kernels import try_kernels
from fuzz.products import try_products
from fuzz.requests import try_requests


def _some(count, part):
    return max(count // part, 1)


TRIALS = {
    **{
        name: lambda tally, folder, rng, count, name=name: try_files(
            tally, folder, rng, count, (name,)
        )
        for name in FORMATS
    },
    "stores": try_stores,
    "requests": try_requests,
    "products": lambda tally, _, rng, count: try_products(tally, rng, _some(count, 10)),
    "kernels": lambda tally, _, rng, count: try_kernels(tally, rng, _some(count, 10)),
    "disks": lambda tally, folder, rng, count: try_full_disks(tally, folder, rng, _some(count, 50)),
    "kills": lambda tally, folder, rng, count: try_kills(tally, folder, rng, _some(count, 400)),
    "outputs": lambda tally, folder, rng, count: try_killed_outputs(
        tally, folder, rng, _some(count, 200)
    ),
    "writers": lambda tally, folder, _, __: [try_writers(tally, folder, n) for n in (2, 4)],
}
"""Every trial by name; each draws from a generator of its own, so that one alone is the same."""


def main():
    """Try everything as often as is asked, print what was tried and what failed."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=2000, help="mutations of each format")
    parser.add_argument("--only", nargs="+", choices=TRIALS, default=TRIALS, help="trials to run")
    asked = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        for trial in asked.only:
            rng = random.Random(f"{asked.seed} {trial}")
            TRIALS[trial](tally, Path(name), rng, asked.inputs)
        os.chdir("/")
    print(f"seed {asked.seed}", *tally.lines, sep="\n")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
