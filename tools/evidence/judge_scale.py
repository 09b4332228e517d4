"""Many small submissions in one batch, killed again and again: memory, and what is left behind.

`python -m tools.evidence.judge_scale --count 1000 --kills 10 --jobs 2` writes that many kernels of
one task to a folder that goes again, kills the batch with SIGKILL each time that a share of them
is judged, and lets the last run end. It prints JSON: the verdicts that were lost or judged twice,
the resident memory of the batch's process (its first and its last quarter of the last run), and
processes and folders of judgements that are left. The exit code is 0 if nothing is lost or left.
"""

import argparse
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

_TASK = """import numpy as np


def inputs(case, rng):
    return {"x": rng.standard_normal(512).astype(np.float32)}


def reference(x):
    return {"z": x + x}
"""
_KERNEL = """import cubecore


@cubecore.kernel
def twice(core, x, z):
    at = 256 * core.asc_get_block_idx()
    a = core.ubuf("float", 256)
    core.asc_copy_gm2ub(a, x + at, 1024)
    core.asc_sync()
    core.asc_add(a, a, a, 256)
    core.asc_sync()
    core.asc_copy_ub2gm(z + at, a, 1024)
    core.asc_sync()


# %d
"""
_LOOK_S = 0.2
_SHARES = 4


def main() -> int:
    """Run the batch, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="judge-scale-") as place:
        told = judged(Path(place), asked.count, asked.kills, asked.jobs)
    print(json.dumps(told, indent=1))
    return 0 if not told["lost"] and not told["processes"] and not told["folders"] else 1


def judged(place: Path, count: int, kills: int, jobs: int) -> dict[str, Any]:
    """Judge many kernels in a folder, and return what was lost, left and held."""
    answers, temporary = place / "answers", place / "tmp"
    answers.mkdir()
    temporary.mkdir()
    (place / "task.py").write_text(_TASK)
    for number in range(count):
        (answers / f"k{number:05}.py").write_text(_KERNEL % number)
    words = ["judge", "--batch", "answers", "--task", "task.py", "--store", "v.sqlite", "--json"]
    command = [sys.executable, "-m", "cubecore", *words, "--blocks", "2", "--jobs", str(jobs)]
    environment = os.environ | {"TMPDIR": str(temporary)}
    lost, before, memory = 0, dict[str, str](), list[int]()
    for run in range(kills + 1):
        until = count if run == kills else (run + 1) * count // (kills + 1)
        memory = _run(command, place, environment, until, ended=run == kills)
        now = _stored(place)
        lost += sum(now.get(key) != verdict for key, verdict in before.items())
        before = now
    part = max(1, len(memory) // _SHARES)
    return {
        "verdicts": len(before),
        "lost": lost + count - len(before),
        "rss_first_mib": round(statistics.mean(memory[:part]) / (1 << 20), 1),
        "rss_last_mib": round(statistics.mean(memory[-part:]) / (1 << 20), 1),
        "processes": _processes(str(temporary)),
        "folders": sorted(each.name for each in temporary.iterdir()),
        "files": sorted(each.name for each in place.iterdir()),
    }


def _run(
    command: list[str], place: Path, environment: dict[str, str], until: int, *, ended: bool
) -> list[int]:
    """Run a batch until so many are judged, or to its end; return its resident memory, in bytes."""
    memory: list[int] = []
    with (place / "out.txt").open("wb") as out:
        process = subprocess.Popen(command, cwd=place, env=environment, stdout=out, stderr=out)
        while process.poll() is None and (ended or len(_stored(place)) < until):
            memory.append(_resident(process.pid))
            time.sleep(_LOOK_S)
        if not ended:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
    time.sleep(1)  # what follows its parent to its end is given a second
    return memory or [0]


def _stored(place: Path) -> dict[str, str]:
    try:
        where = f"file:{place / 'v.sqlite'}?mode=ro"
        with closing(sqlite3.connect(where, uri=True)) as connection:
            return dict(connection.execute("SELECT key, verdict FROM verdicts"))
    except sqlite3.OperationalError:  # the store is not there yet
        return {}


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _processes(word: str) -> int:
    """Return how many processes have a word in their arguments or variables."""
    found = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                text = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            except OSError:
                continue
            found += word.encode() in text
    return found


if __name__ == "__main__":
    sys.exit(main())
