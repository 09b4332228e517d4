"""The entry of programs that `cubecore c++` linked: their main, findings on standard error."""

import os
import sys
from typing import TYPE_CHECKING

from cubecore.cli.streams import FOUND, say, speaks_chinese

if TYPE_CHECKING:
    from cubecore.aliases import Json

_OPTIONS = {"chip": "CUBECORE_CHIP", "checks": "CUBECORE_CHECKS", "order": "CUBECORE_ORDER"}
"""By option of the launches: the variable that gives it."""


def main() -> int:
    """Run the program that the first argument names, and return its exit code."""
    from cubecore.errors import CubecoreError

    try:
        return _run(sys.argv[1], tuple(sys.argv[2:]))
    except CubecoreError as error:
        from cubecore.cli.console import fail_known

        fail_known(error, as_json=False)


def _run(path: str, words: tuple[str, ...]) -> int:
    from cubecore.cli.files import TimeFiles
    from cubecore.errors import refuse
    from cubecore.frontends.cpp.launch.launch_options import TIMEOUT_S, CppLaunchOptions
    from cubecore.frontends.finding_text import finding_lines
    from cubecore.workflows.scripts.program import run_linked

    given = {name: os.environ.get(variable) for name, variable in _OPTIONS.items()}
    options: Json = {name: value for name, value in given.items() if value}
    text = os.environ.get("CUBECORE_TIMEOUT") or str(TIMEOUT_S)
    try:
        timeout_s = float(text)
    except ValueError:
        raise refuse("CUBECORE_TIMEOUT", "be seconds", repr(text)) from None
    auto_sync = _word("CUBECORE_AUTO_SYNC", "on", "off")
    left = _word("CUBECORE_FINDINGS", "fail", "report")
    asked = CppLaunchOptions(timeout_s=timeout_s, auto_sync=auto_sync)
    report = os.environ.get("CUBECORE_REPORT") or None
    files = TimeFiles(report, None)
    files.require_writable()
    answer = run_linked(path, words, options | {"trace": report is not None}, asked)
    for launch in answer.launches:
        if launch.findings:
            title = f"{launch.kernel}[{launch.blocks}] on {launch.chip.name}"
            shown = "\n".join([title, *finding_lines(launch.findings)])
            if speaks_chinese():
                from cubecore.cli.zh.translation import translated

                shown = translated(shown)
            say(shown, to_error=True)
    if report is not None and answer.launches and not answer.findings:
        from cubecore.workflows.scripts.script import times_of

        timed = times_of(path, answer.launches, files.record)
        files.write(timed.longest.run.chip.name, timed)
    return answer.code or (FOUND if answer.findings and left == "fail" else 0)


def _word(variable: str, usual: str, other: str) -> str:
    """Return which of two words a variable has."""
    from cubecore.errors import refuse

    word = os.environ.get(variable) or usual
    if word not in {usual, other}:
        raise refuse(variable, f"be {usual} or {other}", repr(word))
    return word


if __name__ == "__main__":
    sys.exit(main())
