"""python -m fuzz: every trial; exit code 1 if one failed."""

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

from fuzz.disks import try_full_disks, try_killed_outputs, try_kills, try_writers
from fuzz.inputs import try_files, try_stores
from fuzz.judge import Tally
from fuzz.kernels import try_kernels
from fuzz.requests import try_products, try_requests


def main():
    """Try everything as often as is asked, print what was tried and what failed."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=2000, help="mutations of each format")
    asked = parser.parse_args()
    rng, tally, count = random.Random(asked.seed), Tally(), asked.inputs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        try_files(tally, folder, rng, count)
        try_stores(tally, folder, rng, count)
        try_requests(tally, folder, rng, count)
        try_products(tally, rng, max(count // 10, 1))
        try_kernels(tally, rng, max(count // 10, 1))
        try_full_disks(tally, folder, rng, max(count // 50, 1))
        try_kills(tally, folder, rng, max(count // 400, 1))
        try_killed_outputs(tally, folder, rng, max(count // 200, 1))
        for writers in (2, 4):
            try_writers(tally, folder, writers)
        os.chdir("/")
    print(f"seed {asked.seed}", *tally.lines, sep="\n")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
