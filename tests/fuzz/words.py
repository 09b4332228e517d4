"""Words, options and flags of random commands; the options are those that the commands have."""

import click

from cubecore.cli.commands import main

WORDS = (
    *("0", "-1", "1", "17", "1e3", "nan", "inf", "9" * 30, "9" * 5000, "0x10", "\u2028", "\udcff"),
    *("", "\u00e9", "ND", "NZ", "GM", "VECIN", "TSCM", "NORM", "MDL", "IBSHARE", "BSNGD", "mix"),
    *("cube", "DEQF16", "VREQ8", "QF322B8_PRE", "float16", "half", "int8", "bfloat16", "float32"),
    *("int32", "int4", "mxfp8", "float8_e4m3fn", "float4_e2m1fn", "Ascend910B3", "910B", "A2"),
    *("Ascend950PR_9589", "Ascend310P3", "KirinX90", "None", "[]", "{}", "none", "all", "usual"),
    *("-", "/dev/null", ".", "x.npy", "a=1", "baseM=16", "late", "random:3"),
)
SHAPED = ("plan", "check", "run", "time")
"""Commands that take --m, --n and --k."""
_SHAPE = ("m", "n", "k", "processes")


def _of_commands(*, flags):
    context, found = click.Context(main), {}
    for name in main.list_commands(context):
        options = [p for p in main.get_command(context, name).params if p.opts[-1][0] == "-"]
        given = [o.opts[-1] for o in options if o.is_flag is flags]
        found[name] = tuple(option for option in given if option.strip("-") not in _SHAPE)
    return found


OPTIONS, FLAGS = _of_commands(flags=False), _of_commands(flags=True)
"""Options of each command, with and without a value, but for the shape and how many processes."""
ALL_OPTIONS, ALL_FLAGS = (tuple(sorted(set().union(*found.values()))) for found in (OPTIONS, FLAGS))
VERBS = tuple(name for name in OPTIONS if name != "validate")
"""Commands to try; validate times every published measurement, which takes half a minute."""
