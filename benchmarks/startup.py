"""What a command costs before and beside its work: CPU over that of importing NumPy.

Prints one JSON object: for each command the median of the ratios of CPU (user and system) of its
process to that of ``python -c "import numpy"`` in the same round, beside its target. The processes
take turns, so that other load on the machine meets all alike. Bytecode is compiled before the first
round into a folder of its own, or where PYTHONPYCACHEPREFIX says.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from targets import against, arguments

import cubecore
from cubecore.tiling.model.export import to_json_text

SHAPE = {"m": 64, "n": 64, "k": 64}
OPTIONS = [text for name, value in SHAPE.items() for text in (f"--{name}", str(value))]


def commands(tiling: str) -> dict[str, tuple[float, list[str]]]:
    """Return the target and the arguments of each command."""
    return {
        "help": (0.4, ["--help"]),
        "chips": (1.8, ["chips"]),
        "explain": (1.8, ["explain", "L0C-CAPACITY"]),
        "check": (1.8, ["check", tiling, *OPTIONS]),
        "plan": (3.0, ["plan", *OPTIONS]),
        "time": (3.3, ["time", *OPTIONS]),
        "run": (3.5, ["run", *OPTIONS]),
    }


def cpu_seconds(arguments: Sequence[str], environment: dict[str, str]) -> float:
    """Return the user and system time of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *arguments]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    repeats = arguments(__doc__ or "", repeats=7).parse_args().repeats
    with tempfile.TemporaryDirectory() as folder:
        tiling = Path(folder) / "tiling.json"
        tiling.write_text(to_json_text(cubecore.plan(**SHAPE).tiling))
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment.setdefault("PYTHONPYCACHEPREFIX", folder)
        measured = commands(str(tiling))
        processes = {"numpy": ["-c", "import numpy"]}
        processes |= {name: ["-m", "cubecore", *told] for name, (_, told) in measured.items()}
        for told in processes.values():
            cpu_seconds(told, environment)
        rounds = [
            {name: cpu_seconds(told, environment) for name, told in processes.items()}
            for _ in range(repeats)
        ]
    ratios = {
        name: against(statistics.median(r[name] / r["numpy"] for r in rounds), target)
        for name, (target, _) in measured.items()
    }
    numpy_seconds = statistics.median(r["numpy"] for r in rounds)
    print(json.dumps({"repeats": repeats, "numpy_seconds": numpy_seconds, "ratios": ratios}))


if __name__ == "__main__":
    main()
