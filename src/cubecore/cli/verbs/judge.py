"""The command `judge`."""

from typing import Any

import click

from cubecore.aliases import Json
from cubecore.cli.console import show, split_options, table_options
from cubecore.cli.requests.batches import Batch
from cubecore.cli.streams import DONE, FOUND, say
from cubecore.cli.values import ChipName, InputFile, Integer, Number, OutputFile, Word
from cubecore.cli.verb import Verb
from cubecore.errors import unable
from cubecore.sandbox.words import AUTO, WORDS

NO_VERDICT = 3
"""The exit code of a judgement that cubecore itself failed, or that a limit of time ended."""


@click.command(
    cls=Verb,
    examples=[
        "cubecore judge kernel.cpp --entry add --blocks 8 --task arrays.npz --json",
        "cubecore judge --batch answers --task task.py --store verdicts.sqlite",
    ],
)
@click.argument("submission", metavar="[SUBMISSION]", required=False, type=InputFile())
@click.option("--task", type=InputFile(), help="the task: file or folder; a sample brings its own")
@click.option(
    "--batch",
    type=InputFile(),
    help="a folder of submissions, or a JSONL file with a submission, a task and options a line",
)
@click.option("--store", type=OutputFile(), help="SQLite file that keeps the verdicts of --batch")
@click.option("--jobs", type=Integer(), help="judgements of --batch at a time (default: all cores)")
@click.option("--chip", type=ChipName(), help="SoC name (default: CUBECORE_CHIP, else Ascend910B3)")
@click.option("--entry", help="kernel, operator or function, where there are several")
@click.option("--blocks", type=Integer(), default=1, help="blocks of a kernel without host code")
@click.option("--cases", type=Integer(), default=5, help="most cases to run, small ones first")
@click.option("--cap-bytes", type=Integer(), default=16 << 20, help="most bytes of an array")
@click.option(
    "--sizes",
    type=Word(["auto", "full"]),
    default="auto",
    help="auto: smaller sizes of a large task of PyTorch; full: the task's own alone",
)
@click.option("--seed", type=Integer(), default=0, help="random seed of the cases")
@click.option(
    "--instructions",
    type=Integer(),
    default=250_000,
    help="most instructions of all cases together",
)
@click.option("--cpu", type=Number(), default=120.0, help="CPU seconds of a judgement")
@click.option("--wall", type=Number(), default=600.0, help="seconds of a step")
@click.option(
    "-I",
    "--include",
    "includes",
    multiple=True,
    type=InputFile(),
    help="folder for headers beside the submission's; may be repeated",
)
@click.option(
    "--sandbox",
    type=Word(list(WORDS)),
    default=AUTO,
    help="box that the submission runs in: bwrap (bubblewrap), own, none; auto takes the first",
)
@click.option("--report", type=OutputFile(), help="write an HTML page of the verdict")
@table_options
def judge(
    submission: str | None,
    task: str | None,
    report: str | None,
    batch: str | None,
    store: str | None,
    jobs: int | None,
    **options: Any,
) -> int:
    """Judge a submission against a task: values, findings and predicted time.

    Exit codes: 0 right, 1 wrong, 2 a request that does not fit, 3 no verdict: a limit of time, or a
    fault of cubecore's own. With --batch many submissions are judged, each verdict is kept in
    --store, and a batch that was interrupted goes on where it was: 0 if all are judged.
    """
    many = Batch(batch, store, jobs)
    keys, settings, form = split_options(options)
    keys["cpu_s"], keys["wall_s"] = keys.pop("cpu"), keys.pop("wall")
    keys["settings"] = settings
    if many.asked:
        if submission is not None:
            raise unable("--batch", "--batch stands in the place of SUBMISSION")
        return many.judged(task, keys, report, form)
    if submission is None:
        raise click.UsageError("missing SUBMISSION")
    return _judged(submission, task, keys, report, form)


def _judged(submission: str, task: str | None, keys: Json, report: str | None, form: str) -> int:
    """Judge one submission, and return the exit code."""
    from cubecore.cli.progress import working
    from cubecore.output_files import require_writable, write_whole
    from cubecore.workflows.judge.judge import JudgeFaultError
    from cubecore.workflows.judge.judge import judge as make_verdict

    if report is not None:
        require_writable(report, "--report")
    with working("judging") as on_stage:
        try:
            answer = make_verdict(submission, task, on_stage=on_stage, **keys)
        except JudgeFaultError as error:
            say(f"{error}", to_error=True)
            return NO_VERDICT
    if report is not None:
        from cubecore.cli.provenance import signed

        write_whole(report, signed(answer.page(), answer.chip), "--report")
    show(answer, form)
    if answer.correct is None:
        return NO_VERDICT
    return DONE if answer.correct else FOUND
