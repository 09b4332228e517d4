"""The command `time`."""

from typing import TYPE_CHECKING, Any

import click

from cubecore.cli.console import fix_option, problem_options, show, split_options, table_options
from cubecore.cli.requests.kernel_launches import kernel_options, taken_kernel_options
from cubecore.cli.requests.operators import of_operator, operator_options, time_of_operator
from cubecore.cli.requests.scripts import (
    advice_options,
    file_options,
    require_alone,
    require_script,
    script_arguments,
    time_files,
    time_of_script,
)
from cubecore.cli.requests.tilings import TilingFile, given_tiling
from cubecore.cli.streams import DONE
from cubecore.cli.values import Word
from cubecore.cli.verb import Verb

if TYPE_CHECKING:
    from cubecore.aliases import Json

RECORDED = 200_000
"""Instructions of each group of cores that --critical-path looks at."""


@click.command(
    cls=Verb,
    examples=[
        "cubecore time --m 8192 --n 8192 --k 8192 --report product.html",
        "cubecore time kernel.py --advise --trace kernel.json",
    ],
)
@script_arguments
@problem_options
@fix_option
@operator_options
@click.option("--tiling", type=TilingFile(), help="file or log with a tiling (default: the plan's)")
@click.option(
    "--step",
    type=Word(["MDL", "NORM", "CONSTANT", "BASIC"]),
    help="scalar cost of a base-K step: of MDL or NORM, with constant tiling, or hand-written",
)
@file_options
@click.option("--full", is_flag=True, help="time every iteration; skip no recurring ones")
@click.option("--critical-path", is_flag=True, help="print the critical path")
@click.option("--advise", is_flag=True, help="list changes that make it faster, each timed anew")
@advice_options
@kernel_options
@table_options
def time(
    *,
    script: str | None,
    arguments: tuple[str, ...],
    tiling: str | None,
    step: str | None,
    full: bool,
    critical_path: bool,
    advise: bool,
    without_rules: tuple[str, ...],
    try_s: float | None,
    **options: Any,
) -> int:
    """Time a matmul, an operator or a kernel of your own: pipes, stalls and links.

    SCRIPT is one of these: a Python file that launches kernels, or builds them in TIK; a C++ file
    with a main, or a program of `cubecore c++`; a file of C++ kernels, of which one is launched
    with --arg; or the folder of an operator project. ARGUMENTS are those of the script or program.
    """
    kernel, inputs = taken_kernel_options(options), options.pop("debug_inputs")
    others: Json = {"SCRIPT": script, "tiling": tiling, "step": step, "advise": advise}
    others |= {"critical-path": critical_path, "try": try_s, "without-rule": without_rules}
    operator = of_operator(options, {**others, **kernel, "debug-inputs": inputs})
    if operator is not None:
        return time_of_operator(operator, full=full)
    files = time_files(options, tiling or "")
    if script is not None:
        require_alone(script, options, {"tiling": tiling, "critical-path": critical_path or None})
        options |= {"advise": advise, "debug_inputs": inputs}
        options |= {"without_rules": without_rules, "try_s": try_s}
        return time_of_script(script, arguments, files, kernel, options)
    of_script = {"debug_inputs": inputs, "try_s": try_s, "without_rules": without_rules}
    require_script(of_script, kernel)
    from cubecore.cli.progress import working
    from cubecore.workflows.time import time as make_time

    keys, settings, form = split_options(options)
    given = None if tiling is None else given_tiling(tiling)
    with working("timing"):
        record = max(files.record, RECORDED if critical_path else 0)
        keys |= {"tiling": given, "step": step, "settings": settings}
        files.require_openable(lambda: [make_time(**keys)])
        answer = make_time(**keys, record=record, full=full, advise=advise)
        files.write(answer.request.chip.name, answer)
    show(answer, form, answer.path_text if critical_path else None)
    return DONE
