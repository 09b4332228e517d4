"""One command on hostile input, and what must hold behind it."""

import contextlib
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from cubecore.cli.commands import main

CODES = {0, 1, 2}
MOST_SHOWN = 10
"""Failures of one kind of trial that are shown whole."""


@dataclass
class Tally:
    """What was tried and what failed, by the name of a trial."""

    tried: Counter = field(default_factory=Counter)
    codes: Counter = field(default_factory=Counter)
    failed: dict = field(default_factory=dict)

    def fail(self, name, reason):
        self.failed.setdefault(name, []).append(reason)

    @property
    def lines(self):
        """A line a trial, and the failures below it."""
        for name, count in sorted(self.tried.items()):
            codes = {code: self.codes[name, code] for code in sorted(CODES)}
            shown = ", ".join(f"{n} with exit {code}" for code, n in codes.items() if n)
            found = self.failed.get(name, [])
            tail = f" ({shown})" if shown else ""
            yield f"{name}: {count} tried{tail}, {len(found)} failed"
            yield from (f"    {reason}" for reason in found[:MOST_SHOWN])


def commanded(arguments):
    """Return (exit code, standard output, standard error) of a command in this process."""
    out, err, code = StringIO(), StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(a) for a in arguments])
        except SystemExit as stop:
            code = stop.code
        except Exception as error:  # noqa: BLE001 - what this tester is for
            code, text = 70, f"{type(error).__name__}: {error}"
            err.write(text)
    return code, out.getvalue(), err.getvalue()


def processed(arguments, **keys):
    """Return the same of a command in a process of its own."""
    command = [sys.executable, "-m", "cubecore", *map(str, arguments)]
    keys = {"capture_output": True, "timeout": 120, **keys}
    ran = subprocess.run(command, check=False, **keys)
    return ran.returncode, *(
        (text or b"").decode(errors="replace") for text in (ran.stdout, ran.stderr)
    )


def judge(tally, name, arguments, folder, *, kept=(), run=commanded):
    """Run a command; count it, and its failures: a code or a text that no user should meet."""
    before = {path: Path(path).read_bytes() for path in kept}
    code, out, err = run(arguments)
    tally.tried[name] += 1
    tally.codes[name, code] += 1
    told = f"{' '.join(map(str, arguments))}: "
    if code not in CODES:
        tally.fail(name, f"{told}exit {code}, {err.strip()[-300:]}")
    elif "Traceback" in err or "internal error" in err + out:
        tally.fail(name, told + err.strip()[-300:])
    elif any(Path(path).read_bytes() != was for path, was in before.items()):
        tally.fail(name, f"{told}an input was written")
    if (changed := _changed(folder)) is not None:
        tally.fail(name, f"{told}{changed}")
        guard(folder)
    return code, out, err


_PRECIOUS = "what nobody asked to be written\n"
_LINKS = (".cubecore", "o.jsonl.part", "o.jsonl.part.of", "x.jsonl.part", "r.html.part")
"""Names near those of outputs, that lead to a file of the user's."""


def guard(folder):
    """Put a file of the user's into a folder, and links to it where something might write."""
    (folder / "precious").write_text(_PRECIOUS)
    for name in _LINKS:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to("precious")


def _changed(folder):
    """Return what was written of what is guarded."""
    if not (folder / "precious").exists():
        return None
    if (folder / "precious").read_text() != _PRECIOUS:
        return "a file of the user's was written"
    gone = [name for name in _LINKS if not (folder / name).is_symlink()]
    return f"links are gone: {gone}" if gone else None
