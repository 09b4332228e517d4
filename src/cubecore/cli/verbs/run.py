"""The command `run`."""

from dataclasses import replace
from typing import Any

import click

from cubecore.aliases import Json
from cubecore.cli.console import fix_option, problem_options, show, split_options, table_options
from cubecore.cli.requests.kernel_launches import kernel_options, taken_kernel_options
from cubecore.cli.requests.operators import of_operator, operator_options, run_of_operator
from cubecore.cli.requests.scripts import (
    debug_options,
    expect_options,
    require_alone,
    require_script,
    run_of_script,
    script_arguments,
)
from cubecore.cli.requests.tilings import TilingFile, given_tiling
from cubecore.cli.streams import DONE, FOUND
from cubecore.cli.values import ArrayFile, Integer, OutputFile, Word
from cubecore.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=[
        "cubecore run --m 128 --n 512 --k 256",
        "cubecore run abs.cpp --arg x=x.npy --out-arg y=half:16384:y.npy --expect y=golden.npy",
    ],
)
@script_arguments
@problem_options
@fix_option
@click.option("--seed", type=Integer(), help="random seed of the operands (default: 0)")
@operator_options
@click.option("--tiling", type=TilingFile(), help="file or log with a tiling (default: the plan's)")
@click.option("--a-file", type=ArrayFile(), help=".npy or .safetensors with A as stored")
@click.option("--b-file", type=ArrayFile(), help="B, as --a-file")
@click.option("--bias-file", type=ArrayFile(), help="bias row, as --a-file")
@click.option("--scale-file", type=ArrayFile(), help="float32 scales of --quant, one a column of C")
@click.option("--scale-a-file", type=ArrayFile(), help="scales of A (MX), as stored")
@click.option("--scale-b-file", type=ArrayFile(), help="scales of B (MX), as stored")
@click.option("--out", type=OutputFile(), help="write C to this .npy file")
@click.option(
    "--engine",
    type=Word(["fast", "blas", "lockstep", "reference"]),
    help="executes the kernel: fast (the default) takes the fastest that applies",
)
@click.option(
    "--order",
    help="order of the queues: program (the default), late, early or random:SEED",
)
@click.option(
    "--checks",
    default="usual",
    help="memcheck,initcheck,racecheck,synccheck,usecheck or some of them; usual (all but the "
    "last); all; none",
)
@click.option(
    "--all", "everything", is_flag=True, help="show findings that follow from others as well"
)
@click.option("--reference", is_flag=True, help="time NumPy's float32 matmul of the shape as well")
@click.option("--sarif", type=OutputFile(), help="write the findings to this SARIF file")
@debug_options
@expect_options
@kernel_options
@table_options
def run(
    script: str | None,
    arguments: tuple[str, ...],
    tiling: str | None,
    a_file: str | None,
    b_file: str | None,
    bias_file: str | None,
    scale_file: str | None,
    scale_a_file: str | None,
    scale_b_file: str | None,
    out: str | None,
    engine: str | None,
    order: str | None,
    checks: str,
    everything: bool,
    reference: bool,
    sarif: str | None,
    breaks: tuple[str, ...],
    watches: tuple[str, ...],
    dumps: tuple[str, ...],
    step: bool,
    **options: Any,
) -> int:
    """Execute a matmul, an operator or a kernel of your own, and verify its result.

    SCRIPT is one of these: a Python file that launches kernels, or builds them in TIK; a C++ file
    with a main, or a program of `cubecore c++`; a file of C++ kernels, of which one is launched
    with --arg; or the folder of an operator project. ARGUMENTS are those of the script or program.
    """
    kernel, inputs = taken_kernel_options(options), options.pop("debug_inputs")
    expect = {name: options.pop(name) for name in ("expected", "rtol", "atol")}
    asked = {"breaks": breaks, "watches": watches, "dumps": dumps, "step": step}
    others: Json = {"SCRIPT": script, "tiling": tiling, "out": out, "engine": engine}
    others |= {"order": order}
    others |= {"reference": reference, "sarif": sarif, "debug-inputs": inputs, **asked, **kernel}
    others |= {"expect": expect["expected"], "rtol": expect["rtol"], "atol": expect["atol"]}
    operator = of_operator(options, others)
    if operator is not None:
        return run_of_operator(operator)
    if script is not None:
        others = {"tiling": tiling, "a-file": a_file, "b-file": b_file, "bias-file": bias_file}
        others |= {
            "scale-file": scale_file,
            "out": out,
            "reference": "given" if reference else None,
        }
        others |= {"scale-a-file": scale_a_file, "scale-b-file": scale_b_file}
        require_alone(script, options, others)
        options |= {"engine": engine, "order": order, "checks": checks, "debug_inputs": inputs}
        options |= expect
        said = script, arguments, sarif, asked, kernel, options
        return run_of_script(*said, everything=everything)
    require_script({**asked, "debug_inputs": inputs, **expect}, kernel)
    files = a_file, b_file, bias_file, scale_file, scale_a_file, scale_b_file
    options |= {"engine": engine or "fast", "order": order or "program", "checks": checks}
    options |= {"reference": reference, "out": out}
    return _run_product(options, tiling, files, sarif)


def _run_product(
    options: Json, tiling: str | None, operands: tuple[str | None, ...], sarif: str | None
) -> int:
    """Run a matmul with the operands of files, and return the exit code."""
    from cubecore.cli.files import write_sarif
    from cubecore.cli.progress import working
    from cubecore.output_files import require_writable
    from cubecore.workflows.data.operands import OperandFiles
    from cubecore.workflows.data.process import process_seconds
    from cubecore.workflows.run import run as make_run

    keys, settings, form = split_options(options)
    keys["tiling"] = None if tiling is None else given_tiling(tiling)
    keys["operands"] = OperandFiles(*operands)
    if sarif is not None:
        require_writable(sarif, "--sarif")
    with working("planning") as on_stage:
        answer = make_run(settings=settings, on_stage=on_stage, **keys)
        write_sarif(sarif, answer.findings)
    answer = replace(answer, total_wall_s=process_seconds())
    show(answer, form)
    return DONE if answer.verified else FOUND
