"""Options and answers of `run` and `time` for an operator of vector cores."""

import click

from cubecore.aliases import Json, JsonMapping
from cubecore.cli.console import Command, show, split_options
from cubecore.cli.streams import DONE, FOUND
from cubecore.cli.values import Integer

_OF_ATTENTION = ("causal", "kv_heads", "rows", "keys", "splits")


def operator_options(command: Command) -> Command:
    """Add what names an operator, and the options of attention."""
    shape = click.option("--shape", help="shape of the operator's input, such as 4096x2048")
    operator = click.option(
        "--op", help="an operator of vector cores: softmax, gelu, rms_norm, ..."
    )
    causal = click.option(
        "--causal", is_flag=True, help="attention: each row of Q sees the keys up to its own"
    )
    counts = (
        ("--kv-heads", "heads of K and V, which the heads of Q share (default: as many as of Q)"),
        ("--rows", "rows of Q that a core takes at a time: 64, 128 or 256 (default: 64)"),
        ("--keys", "rows of K in L1 at a time: 64, 128 or 256 (default: 256; 128 beside --rows)"),
        ("--splits", "parts of the keys of a head, each on a core of its own (default: 1)"),
    )
    for name, text in reversed(counts):
        command = click.option(name, type=Integer(), help=f"attention: {text}")(command)
    return operator(shape(causal(command)))


def of_operator(options: Json, files: JsonMapping) -> Json | None:
    """Return the operator that is asked for as keywords; None where a matmul is.

    Raises
    ------
    RequestError
        If one of --op and --shape is missing, or an option is given that operators have not.
    """
    op, shape = options.pop("op"), options.pop("shape")
    of_attention = {name: options.pop(name) for name in _OF_ATTENTION}
    asked = [name for name, value in of_attention.items() if value not in (None, False)]
    if op is None and shape is None and not asked:
        return None
    from cubecore.errors import RequestError, Violation, unable
    from cubecore.kernels.operators.attention.options import AttentionOptions

    if op is None or shape is None:
        missing, named = ("--op", "--shape") if op is None else ("--shape", "--op")
        if op is None and shape is None:
            named = f"--{asked[0].replace('_', '-')}"
        raise unable(missing, f"{named} needs {missing} beside it")
    given: Json = {**options, **files}
    taken = {name: given.pop(name, None) for name in ("a", "chip", "settings", "as_json")}
    wrong = [
        Violation(
            f"--{name}", "", "", "", f"--{name.replace('_', '-')} does not apply to an operator"
        )
        for name, value in given.items()
        if value is not None and value is not False and value != ()
    ]
    if wrong:
        raise RequestError(wrong)
    keys, settings, as_json = split_options(taken)
    asked_for = {"op": op, "shape": shape, "options": AttentionOptions(**of_attention)}
    return {**asked_for, **keys, "settings": settings, "as_json": as_json}


def time_of_operator(keys: Json, *, full: bool) -> int:
    """Print where the cycles of an operator go, and return the exit code."""
    from cubecore.workflows.operators.operators import time_operator

    as_json = keys.pop("as_json")
    show(time_operator(**keys, full=full), as_json)
    return DONE


def run_of_operator(keys: Json) -> int:
    """Execute an operator, print how it ended, and return the exit code."""
    from cubecore.workflows.operators.operator_run import run_operator

    as_json = keys.pop("as_json")
    done = run_operator(**keys)
    show(done, as_json)
    return DONE if done.verified else FOUND
