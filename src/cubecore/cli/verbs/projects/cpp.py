"""The command `c++`."""

import click

from cubecore.cli.streams import DONE, say
from cubecore.cli.verb import Verb


@click.command(
    "c++",
    cls=Verb,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    examples=[
        "cubecore c++ main.cpp -o program && ./program",
        "cubecore c++ -O2 -I include main.cpp kernels.cpp -o program",
    ],
)
@click.argument("words", metavar="[OPTION | FILE]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def cpp(context: click.Context, words: tuple[str, ...]) -> int:
    """Compile C++ kernels and host code to a program that runs on cubecore.

    As in: cubecore c++ main.cpp kernel.cpp -o demo && ./demo. Options are those of C++ compilers:
    -o, -c, -dc, -lib, -shared, -D, -U, -I, -L, -l, -isystem, -include; and --verbose,
    --npu-arch=dav-2201, --cce-auto-sync=on|off. The program takes CUBECORE_CHIP, CUBECORE_CHECKS,
    CUBECORE_ORDER, CUBECORE_TIMEOUT and CUBECORE_REPORT from the environment; findings go to
    standard error and make its exit code 1.
    """
    if set(words) & {"--help", "-h"}:
        say(context.get_help())
        return DONE
    from cubecore.frontends.cpp.host_programs.driver import compile_and_link

    compile_and_link(words)
    return DONE
