"""Every element type of every instruction meets an independent oracle.

`goldens/every_type.json` lists the types that ran while the catalogue's oracles did; only a run can
write it. A type that is declared and not listed fails the ordinary run; the sweep runs the oracles
again, and fails where the list says more than ran.
"""

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from cubecore.isa.catalogue import instructions
from isa.test_catalogue import ORACLES

TESTS = Path(__file__).parent.parent
BESIDE = [TESTS / "isa/cube" / f"test_{name}.py" for name in ("mad_3510", "int4", "mad_starts")]
"""Oracles of types that an instruction has on some chips only."""
GOLDEN = Path(__file__).parent / "goldens" / "every_type.json"


def declared() -> dict[str, dict[str, set[str]]]:
    """Every instruction's fields that hold an element type, and the types that they take."""
    return {
        name: {f.name: set(f.metadata["types"]) for f in fields(kind) if "types" in f.metadata}
        for name, kind in instructions().items()
    }


def listed() -> dict[str, dict[str, set[str]]]:
    found = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return {name: {f: set(t) for f, t in types.items()} for name, types in found.items()}


def test_every_declared_type_has_met_its_oracle():
    refresh = "pytest -m sweep --refresh-goldens tests/isa/test_every_type.py lists what ran"
    assert listed() == declared(), refresh


@pytest.mark.sweep
def test_the_list_is_what_ran(tmp_path, request):
    files = {TESTS / place.split("::")[0] for place in ORACLES.values()} | set(BESIDE)
    ran = tmp_path / "ran.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "isa.recording", "--isa-ran", ran]
    command += ["--every-case", "-m", "sweep or not sweep"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *sorted(files)],
        capture_output=True,
        text=True,
        check=False,
        cwd=TESTS.parent,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    found = json.loads(ran.read_text(encoding="utf-8"))
    kept = {
        name: {f: sorted(types & set(found.get(name, {}).get(f, ()))) for f, types in row.items()}
        for name, row in sorted(declared().items())
        if name in found
    }
    if request.config.getoption("--refresh-goldens"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    for name, row in listed().items():
        for field, types in row.items():
            assert types <= set(kept[name][field]), (name, field)
