"""Run the table on checkouts, and hold every result to its oracle.

``python -m tests.public_tik.run CHECKOUTS [WORD...]`` from the repository's root, where CHECKOUTS
holds the repositories as OWNER/NAME. With words it runs the cases whose name contains one. Each
case has a process and a time limit of its own. `tests.public_tik.survey` writes what came out.
"""

import contextlib
import importlib
import io
import sys
import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cubecore.frontends.tik.host.program import program_session
from cubecore.frontends.tik.trace.run_options import TikOptions

from .apart import apart
from .case import Array, Case
from .place import importable
from .table import CASES

DATA = Path(__file__).resolve().parents[2] / "tools" / "evidence" / "public_tik.jsonl"
LIMIT = 120
"""Seconds that a case may take."""
_OPEN = 2**31 - 1
"""The size by which these operators declare a dimension that the launch decides."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case came to: `worst` is the largest distance from the oracle, `error` a refusal."""

    case: Case
    verified: bool = False
    worst: float = 0.0
    findings: tuple[str, ...] = ()
    files: frozenset[str] = frozenset()
    error: str = ""

    def __str__(self) -> str:
        said = self.error or f"off by {self.worst:g} of {self.case.tolerance:g}"
        state = "verified" if self.verified else "FAILED"
        return f"{state:8} {self.case.path}: {said} {' '.join(self.findings)}".rstrip()


def worst_of(found: Iterable[Array], wanted: Iterable[Array | None]) -> float:
    """Return the largest distance from what is wanted; infinite for what is no number."""
    worst = 0.0
    for got, expected in zip(found, wanted, strict=False):
        if expected is None:
            continue
        flat = np.asarray(expected).astype(float).reshape(-1)
        held = ~np.isnan(flat)
        off = np.abs(got.reshape(-1)[: flat.size].astype(float) - flat)[held]
        worst = max(worst, float(np.nan_to_num(off, nan=np.inf).max(initial=0)))
    return worst


def _built(case: Case, checkout: Path, session: Any) -> tuple[Any, frozenset[str]]:
    """Build the operator; return it with the files of the checkout whose code ran."""
    codes: set[str] = set()

    def seen(frame: types.FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            codes.add(frame.f_code.co_filename)

    from tbe.common.platform import set_current_compile_soc_info

    set_current_compile_soc_info(case.soc)
    function = getattr(importlib.import_module(case.module), case.function)
    sys.setprofile(seen)
    try:
        function(*case.arguments)
    finally:
        sys.setprofile(None)
    top = checkout.resolve()
    real = (Path(code).resolve() for code in codes)
    files = {str(path.relative_to(top)) for path in real if path.is_relative_to(top)}
    return session.built[-1], frozenset(files | ({case.path} if case.generator else set()))


def _feeds(case: Case, kernel: Any, drawn: list[Array]) -> dict[str, Array]:
    feeds = {}
    for declared, value in zip(kernel.inputs, case.feed(*drawn), strict=True):
        shape = tuple(declared.shape)
        array = np.ascontiguousarray(value).astype(declared.record.numpy)
        if all(isinstance(size, int) and size < _OPEN for size in shape):
            array = array.reshape(shape) if array.size == np.prod(shape) else array
        feeds[declared.name] = array
    return feeds


def measure(case: Case, checkouts: Path) -> Outcome:
    """Build, launch and judge a case in this process, whose modules and paths it changes."""
    checkout = checkouts / case.repository
    options = TikOptions(chip=case.chip)
    with program_session(options) as session, importable(case, checkout):
        quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
        with quiet[0], quiet[1]:
            built, files = _built(case, checkout, session)
            kernel, drawn = built.kernel, case.inputs()
            names = [declared.name for declared in kernel.outputs]
            shapes = zip(kernel.outputs, case.outputs, strict=False)
            outputs = {t.name: np.zeros(shape, t.record.numpy) for t, shape in shapes}
            shared = {names[out]: kernel.inputs[at].name for out, at in case.in_place.items()}
            run = built.launch(_feeds(case, kernel, drawn), outputs or None, shared or None)
    wanted = case.wanted(drawn)
    worst = worst_of([run.outputs[name] for name in names], wanted)
    missing = set(case.files) - files
    return Outcome(
        case,
        verified=worst <= case.tolerance and not missing,
        worst=worst,
        findings=tuple(sorted({finding.id for finding in run.findings})),
        files=files,
        error=f"{', '.join(sorted(missing))} took no part" if missing else "",
    )


def _measured(case: Case, checkouts: Path) -> tuple[Any, ...]:
    """Return an outcome's fields behind the case."""
    try:
        outcome = measure(case, checkouts)
    except BaseException as error:  # noqa: BLE001  an operator may raise, or leave, as it likes
        return (False, 0.0, (), frozenset(), f"{type(error).__name__}: {error}"[:300])
    return (outcome.verified, outcome.worst, outcome.findings, outcome.files, outcome.error)


def run_case(case: Case, checkouts: Path, limit: float = LIMIT) -> Outcome:
    """Run a case in a process of its own, which is ended when its time is over."""
    try:
        return Outcome(case, *apart(_measured, case, checkouts, limit=limit))
    except TimeoutError:
        return Outcome(case, error=f"took more than {limit:g} s")
    except EOFError:
        return Outcome(case, error="its process ended without a result")


def rows_after(rows: list[dict[str, Any]], outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """Return the page's rows as these outcomes leave them; other operators keep theirs."""
    by_file: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        for path in outcome.case.files:
            by_file.setdefault((outcome.case.repository, path), []).append(outcome)
    after = []
    for row in rows:
        of = by_file.get((row["repository"], row["path"]), [])
        known = {key: row[key] for key in ("repository", "revision", "path", "category")}
        if not of:
            after.append(row)
        elif not all(outcome.verified for outcome in of):
            error = next((o.error for o in of if o.error), "")
            after.append(known | ({"outcome": "built"} | ({"why": error} if error else {})))
        else:
            notes = sorted({outcome.case.note for outcome in of if outcome.case.note})
            changed = sorted({outcome.case.changed for outcome in of if outcome.case.changed})
            via = {Path(o.case.path).name for o in of if o.case.path != row["path"]}
            notes = [f"as part of {name}" for name in sorted(via)] + notes
            found = sorted({finding for outcome in of for finding in outcome.findings})
            extra = {"why": "; ".join(notes)} if notes else {}
            extra |= {"changed": "; ".join(changed)} if changed else {}
            extra |= {"findings": found} if found else {}
            after.append(known | {"outcome": "verified"} | extra)
    return after


def run_all(checkouts: Path, words: Sequence[str] = ()) -> list[Outcome]:
    """Run the cases whose name contains a word, or all, one after another; print each."""
    outcomes = []
    for case in CASES:
        if not words or any(word in case.name for word in words):
            outcomes.append(run_case(case, checkouts))
            sys.stdout.write(f"{outcomes[-1]}\n")
            sys.stdout.flush()
    return outcomes


def main(arguments: list[str]) -> int:
    """Run the cases that were asked for; 1 when one of them is not verified."""
    if not arguments or not Path(arguments[0]).is_dir():
        sys.stderr.write(f"{__doc__}\n")
        return 2
    checkouts, words = Path(arguments[0]), arguments[1:]
    outcomes = run_all(checkouts, words)
    good = sum(outcome.verified for outcome in outcomes)
    files = {(o.case.repository, path) for o in outcomes if o.verified for path in o.case.files}
    sys.stdout.write(f"{good} of {len(outcomes)} cases verified, {len(files)} operators\n")
    return int(good < len(outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
