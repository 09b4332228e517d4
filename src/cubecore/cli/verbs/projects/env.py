"""The command `env`."""

import click

from cubecore.cli.streams import DONE, say
from cubecore.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=[
        'eval "$(cubecore env)" && cmake -B build && cmake --build build',
    ],
)
@click.option("--libraries", is_flag=True, help="list the vendor libraries that have stand-ins")
def env(libraries: bool) -> int:
    """Show the shell's settings for CMake projects of kernels: eval "$(cubecore env)".

    find_package(ASC) then finds the language ASC, which cubecore c++ compiles.
    """
    from cubecore.frontends.cpp.host_programs.cmake_project import (
        environment_text,
        vendor_libraries,
    )

    say(" ".join(vendor_libraries()) if libraries else environment_text())
    return DONE
