"""The command `sweep`."""

from math import prod
from typing import Any

import click

from cubecore.cli.console import fix_option, problem_options, show, split_options, table_options
from cubecore.cli.requests.tilings import TilingFile, given_tiling
from cubecore.cli.streams import DONE, FOUND
from cubecore.cli.values import OutputFile, Word
from cubecore.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=[
        "cubecore sweep k=1024..65536x2 --m 4096 --n 4096 --plot k.svg",
        "cubecore sweep m=128,256,512 --n 4096 --k 4096 --csv",
    ],
)
@click.argument("axes", nargs=-1, required=True, metavar="NAME=VALUES [NAME=VALUES]")
@problem_options
@fix_option
@click.option(
    "--tiling",
    type=TilingFile(),
    help="file with a tiling for every point (default: each point's plan)",
)
@click.option("--keep-tiling", is_flag=True, help="plan once, and time that tiling at every point")
@click.option("--step", type=Word(["MDL", "NORM", "CONSTANT", "BASIC"]), help="as for time")
@click.option(
    "--plot", type=OutputFile(), help="write an SVG plot of time and TFLOPS over the first NAME"
)
@table_options
def sweep(
    axes: tuple[str, ...],
    tiling: str | None,
    keep_tiling: bool,
    step: str | None,
    plot: str | None,
    **options: Any,
) -> int:
    """Time a matmul (GEMM) over values of its shape, its options, its tiling or its chip.

    NAME is an option of a problem (m, format_b, chip), a field of TCubeTiling (baseM) or one of the
    chip (hbm_bytes_per_second). VALUES are 64,128,512 or 512..4096/512 (every 512) or
    1024..65536x2 (doubling). The exit code is 1 if a point has no time.
    """
    from cubecore.answers.sweep import SweptAxis
    from cubecore.cli.progress import counting
    from cubecore.errors import refuse
    from cubecore.output_files import require_writable, write_whole
    from cubecore.workflows.sweep.vary import sweep as make_sweep

    keys, settings, form = split_options(options)
    varied = [SweptAxis.from_text(text) for text in axes]
    if plot is not None:
        if not plot.endswith(".svg"):
            raise refuse("--plot", "name a .svg file", repr(plot))
        require_writable(plot, "--plot")
    given = None if tiling is None else given_tiling(tiling)
    points = prod(len(axis.values) for axis in varied)
    with counting("timing", points) as advance:
        answer = make_sweep(
            varied,
            tiling=given,
            settings=settings,
            step=step,
            keep_tiling=keep_tiling,
            progress=advance,
            **keys,
        )
    if plot is not None:
        write_whole(plot, answer.plot(), "--plot")
    show(answer, form)
    return DONE if answer.complete else FOUND
