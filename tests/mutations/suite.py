"""The mutation suite over the example kernels, and the file of what it found.

``python -m mutations.suite [NAME ...]`` from tests/, with src/ on the path, runs every mutant of
some examples (or of all) and writes their part of `results.json`, which docs/mutations.md shows.
"""

import json
import runpy
import sys
from dataclasses import astuple, replace
from pathlib import Path

from mutations.judge import judged
from mutations.recording import recorded

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "examples" / "kernels"
RESULTS = HERE / "results.json"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
SEEDS, FEW = 1000, 20
"""Drawn orders of a mutant that nothing is reported of, and of one that something is."""


def recordings(name):
    """Return what a small case of an example launches, each kernel once."""
    module = runpy.run_path(str(FOLDER / f"{name}.py"))
    given = module["small"]()
    found = recorded(lambda: module["launch"](*given))
    if name == "vector_add":
        styles = [add for add in module["KERNELS"] if add.name != found[0].kernel]
        found += [
            r for add in styles for r in recorded(lambda a=add: module["launch"](*given, add=a))
        ]
    once = {r.kernel: r for r in found}
    return [replace(r, name=f"{name}.{kernel}") for kernel, r in once.items()]


def results(name, **how):
    """Return the tables of an example's kernels as JSON."""
    made = {}
    for recording in recordings(name):
        table = judged(recording, **how)
        made[recording.name] = {
            "rows": {kind: astuple(row) for kind, row in table.rows.items()},
            "equivalent": table.equivalent,
            "missed": [[text, *kinds] for text, kinds in table.missed],
        }
    return made


def known():
    """Return what the file says."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}


def main(names):
    """Run some examples and write what was found."""
    for name in names or NAMES:
        found = results(name, seeds=SEEDS, few=FEW)
        others = {k: v for k, v in known().items() if not k.startswith(f"{name}.")}
        text = json.dumps(dict(sorted({**others, **found}.items())), indent=1)
        RESULTS.write_text(text + "\n", encoding="utf-8")
        print(name, "done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
