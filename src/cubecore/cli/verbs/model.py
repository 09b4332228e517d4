"""The command `model`."""

from typing import Any

import click

from cubecore.cli.console import show, split_options, table_options
from cubecore.cli.streams import DONE, FOUND
from cubecore.cli.values import ChipName, InputFile, Integer, OutputFile, Word
from cubecore.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=[
        "cubecore model config.json --phase decode --batch 8 --seq 4096 --tp 8",
        "cubecore model config.json --phase prefill --batch 1 --seq 8192 --report step.html",
    ],
)
@click.argument("config", type=InputFile())
@click.option("--phase", type=Word(["prefill", "decode"]), help="kind of step (needed)")
@click.option("--batch", type=Integer(), help="sequences in the step (needed)")
@click.option(
    "--seq", type=Integer(), help="tokens of each sequence in a prefill; the context of a decode"
)
@click.option("--tp", type=Integer(), default=1, help="cards that divide heads and widths")
@click.option("--ep", type=Integer(), default=1, help="cards that divide the experts")
@click.option(
    "--dtype", help="element type: bf16, fp16, int8, mxfp8, ... (default: the config's, else bf16)"
)
@click.option(
    "--head-dtype",
    help="that of the head, routers and MLA's matmuls by head (default: 16 bits)",
)
@click.option("--format-b", default="ND", help="layout of the weights: ND or NZ")
@click.option(
    "--chip",
    type=ChipName(),
    help="SoC name or chip file my.toml (default: CUBECORE_CHIP, else Ascend910B3)",
)
@click.option(
    "--without", help="terms that are not counted: attention, norms, rotary, activations, ..."
)
@click.option(
    "--force", is_flag=True, help="time a step whose weights and cache do not fit into the card"
)
@click.option("--store", type=OutputFile(), help="SQLite file that keeps and reuses the plans")
@click.option("--out", type=OutputFile(), help="JSONL file: each matmul with its tiling")
@click.option("--report", type=OutputFile(), help="write an HTML page")
@table_options
def model(config: str, **options: Any) -> int:
    """Time a step of a language model: TPOT or TTFT, tokens/s, memory, matmuls and other terms.

    CONFIG is a Hugging Face config.json or its folder: Llama, Mistral, Qwen, DeepSeek, GLM, Gemma
    or Phi. Every matmul is planned and timed. Attention, norms, rotary embedding,
    activations, quantisation, routing, permutation and collectives are terms beside the
    matmuls. The exit code is 1 if a matmul has no plan.
    """
    from cubecore.cli.progress import working
    from cubecore.errors import MISSING, RequestError, Violation
    from cubecore.output_files import require_writable, write_whole
    from cubecore.workflows.model import model as make_model

    keys, settings, form = split_options(options)
    if lacking := [name for name in ("phase", "batch") if name not in keys]:
        missing = ", ".join(f"--{name}" for name in lacking)
        raise RequestError([Violation(missing, "", "", sentence=f"{MISSING}{missing}")])
    report, out = keys.pop("report", None), keys.pop("out", None)
    for option, path in (("--report", report), ("--out", out)):
        if path is not None:
            require_writable(path, option)
    if (words := keys.pop("without", None)) is not None:
        keys["without"] = words.split(",")
    with working("planning the matmuls"):
        answer = make_model(config, settings=settings, **keys)
    if out is not None:
        import json

        lines = (json.dumps(row.to_json()) for row in answer.rows)
        write_whole(out, "".join(f"{line}\n" for line in lines), "--out")
    if report is not None:
        from cubecore.cli.provenance import signed

        write_whole(report, signed(answer.page(), answer.request.chip.name), "--report")
    show(answer, form)
    return DONE if answer.complete else FOUND
