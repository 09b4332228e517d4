"""A command loads what it needs: the packages of cubecore and the heavy libraries, command by
command; more than these is a mistake."""

import json
import subprocess
import sys

import pytest

import cubecore
from cubecore.tiling.model.export import to_json_text

SHAPE = ("--m", "64", "--n", "64", "--k", "64")
HEAVY = {
    "click", "typing", "numpy", "numpy.ma", "numpy.random", "ml_dtypes", "rich", "jinja2",
    "sqlite3", "safetensors", "greenlet", "threadpoolctl", "concurrent.futures",
    "multiprocessing", "zipfile", "tempfile",
}  # fmt: skip
CHIPS = {
    "answers",
    "presented",
    "aliases",
    "chips",
    "citations",
    "cli",
    "cli.verbs",
    "click",
    "errors",
    "manual",
    "package_data",
    "typing",
    "units",
    "version",
    "workflows",
}
RULES = CHIPS | {
    "arrays", "dtypes", "layouts", "numpy", "tiling.model", "tiling.rules",
}  # fmt: skip
PLAN = RULES | {
    "cache",
    "cli.requests",
    "output_files",
    "tiling.cost",
    "tiling.repair",
    "tiling.solver",
    "workflows.data",
}
KERNEL = PLAN | {
    "isa.cube", "isa.declare", "isa.mte", "isa.program", "isa.scalar", "kernels.build",
    "kernels.matmul", "numerics", "reports.files",
}  # fmt: skip
PLAN_TIMING = {
    *("advice", "planning", "timing.memory", "timing.pipes", "timing.tiles"),
}
TIMING = PLAN_TIMING | {"greenlet", "reports.html", "timing.steady_state"}
MACHINE = {
    "machine.blas", "machine.memory", "machine.execute", "machine.sanitize",
    "concurrent.futures", "manual", "threadpoolctl", "numpy.random",
}  # fmt: skip
MODEL = {
    *("concurrent.futures", "models", "sqlite3", "workflows.sweep"),
    *("greenlet", "isa.vector", "kernels.operators", "timing.steady_state", "workflows.operators"),
}
COMPILER = {
    *("aliases", "arrays", "cache", "chips", "cli", "cli.verbs", "click", "dtypes", "errors"),
    *("frontends.capi", "frontends.cpp", "frontends.cpp.compile", "isa.declare", "isa.program"),
    *("isa.scalar", "isa.vector", "layouts", "machine.memory", "numerics"),
    *("machine.execute", "machine.sanitize", "numpy", "package_data", "tempfile", "typing"),
    *("manual", "tiling.model", "units", "version", "zipfile"),
}
HELP = {"aliases", "cli", "cli.verbs", "click", "typing", "version"}
MAY_LOAD = {
    ("--help",): {"cli", "version"},
    ("plan", "--help"): HELP,
    ("chips",): CHIPS,
    ("chips", "Ascend910B3"): CHIPS,
    ("explain", "L0C-CAPACITY"): RULES,
    ("check", "TILING", *SHAPE): RULES | {"cli.requests", "output_files"},
    ("plan", *SHAPE): KERNEL | PLAN_TIMING,
    ("model", "CONFIG", "--phase", "decode", "--batch", "1"): KERNEL | PLAN_TIMING | MODEL,
    ("time", *SHAPE): KERNEL | TIMING,
    ("compare", "TILING", "TILING", *SHAPE): KERNEL | TIMING,
    ("env",): {
        *("aliases", "cli", "cli.verbs", "click", "errors", "frontends.cpp"),
        *("typing", "version"),
    },
    ("c++", "-c", "HOST", "-o", "OBJECT"): COMPILER,
    ("sample", "--help"): HELP,
    ("tune", "TILING", *SHAPE): KERNEL | TIMING,
    ("run", *SHAPE): KERNEL | MACHINE | TIMING,
}
CONFIG = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 1,
    "num_hidden_layers": 1, "vocab_size": 64,
}  # fmt: skip
CODE = """
import atexit, json, sys
from cubecore.cli.entry import main
out = sys.argv.pop(1)
atexit.register(lambda: open(out, "w").write(json.dumps(sorted(sys.modules))))
main()
"""


def packages(modules):
    """Return the heavy libraries among modules, and packages of cubecore, modules at its roots."""
    found = HEAVY & set(modules)
    for name in modules:
        head, *parts = name.split(".")
        if head != "cubecore" or not parts:
            continue
        below = [other for other in modules if other.startswith(f"{name}.")]
        if below:
            continue
        kept = parts[:2] if f"cubecore.{'.'.join(parts[:2])}" != name else parts[:1]
        found.add(".".join(kept))
    return found


@pytest.mark.parametrize("command", MAY_LOAD, ids=" ".join)
@pytest.mark.thinned(20)
def test_a_command_loads_what_it_needs(command, tmp_path):
    tiling, out = tmp_path / "tiling.json", tmp_path / "modules.json"
    tiling.write_text(to_json_text(cubecore.plan(m=64, n=64, k=64).tiling))
    host, compiled = tmp_path / "host.cpp", tmp_path / "host.o"
    host.write_text("int main() { return 0; }\n")
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    files = {
        "TILING": str(tiling),
        "CONFIG": str(config),
        "HOST": str(host),
        "OBJECT": str(compiled),
    }
    arguments = [files.get(part, part) for part in command]
    subprocess.run(
        [sys.executable, "-c", CODE, str(out), *arguments],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    loaded = packages(json.loads(out.read_text()))
    roots = {name.split(".")[0] for name in MAY_LOAD[command]}
    assert {name for name in loaded if name not in roots} <= MAY_LOAD[command]
