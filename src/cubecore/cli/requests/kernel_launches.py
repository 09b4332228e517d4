"""Options that say how a kernel in a C++ file is launched."""

from typing import TYPE_CHECKING

import click

from cubecore.aliases import Json, JsonMapping
from cubecore.cli.console import Command, with_options
from cubecore.cli.values import Integer, Number, Word
from cubecore.sandbox.words import WORDS

if TYPE_CHECKING:
    from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions

_KERNEL_OPTIONS = {
    "--entry": ("entry", "entry"),
    "--blocks": ("blocks", "blocks"),
    "--grid": ("grid", "grid"),
    "--block": ("block", "block"),
    "--dynamic-ub": ("dynamic_ub", "dynamic_ub"),
    "--arg": ("kernel_arguments", "arguments"),
    "--out-arg": ("outputs", "outputs"),
    "--outputs": ("marked_outputs", "marked_outputs"),
    "--scratch": ("scratch", "scratch"),
    "-D": ("defines", "defines"),
    "--tiling-data": ("tiling_data", "tiling_data"),
    "--tiling-key": ("tiling_key", "tiling_key"),
    "--timeout": ("timeout", "timeout_s"),
    "--auto-sync": ("auto_sync", "auto_sync"),
    "--verbose": ("verbose", "verbose"),
    "--sandbox": ("sandbox", "sandbox"),
}
"""By option: its name among a command's keywords, and in `CppLaunchOptions`."""


def size_options(command: Command) -> Command:
    """Add the size of a launch: of cores, or of threads (SIMT)."""
    return with_options(
        command,
        click.option(
            "--dynamic-ub", type=Integer(), help="bytes of UB that a launch asks for (Ascend 950)"
        ),
        click.option("--block", metavar="THREADS", help="threads of a block: 256, or 32x8"),
        click.option("--grid", metavar="BLOCKS", help="blocks of a kernel of threads: 40, or 8x4"),
        click.option("--blocks", type=Integer(), help="number of blocks of a C++ kernel"),
    )


def process_options(command: Command) -> Command:
    """Add what says how a C++ kernel's process is started, and what its compiler says."""
    return with_options(
        command,
        click.option(
            "--verbose", is_flag=True, help="with a C++ SCRIPT, show the compiler's whole output"
        ),
        click.option(
            "--sandbox",
            type=Word(list(WORDS)),
            help="box that the kernel of a C++ SCRIPT runs in: auto, bwrap, own, none (default)",
        ),
        click.option(
            "--timeout", type=Number(), help="limit in seconds of a C++ kernel (default: 60)"
        ),
    )


def kernel_options(command: Command) -> Command:
    """Add what says how a kernel in a C++ file, or one that a TIK program builds, is launched."""
    return with_options(
        command,
        click.option(
            "--debug-inputs",
            type=Word(["random"]),
            help="run kernels that the script only builds, on random inputs",
        ),
        process_options,
        click.option(
            "--auto-sync",
            type=Word(["on", "off"]),
            help="order dependent vector and scalar instructions as the vendor's compiler does",
        ),
        click.option("--tiling-key", type=Integer(), help="value of TILING_KEY_IS"),
        click.option(
            "--tiling-data", metavar="FIELD=VALUE,...", help="the kernel's tiling struct, or a .bin"
        ),
        click.option(
            "-D", "defines", multiple=True, metavar="NAME=VALUE", help="macro for a C++ SCRIPT"
        ),
        click.option(
            "--scratch",
            multiple=True,
            metavar="NAME[:BYTES]",
            help="workspace of the kernel: an --arg, or uninitialised memory of so many bytes",
        ),
        click.option(
            "--outputs",
            "marked_outputs",
            multiple=True,
            metavar="NAME",
            help="array of --arg that the kernel must write whole",
        ),
        click.option(
            "--out-arg",
            "outputs",
            multiple=True,
            metavar="NAME=TYPE:SHAPE:FILE",
            help="array that the kernel fills, such as z=float32:16384:z.npy",
        ),
        click.option(
            "--arg",
            "kernel_arguments",
            multiple=True,
            metavar="NAME=VALUE",
            help="argument of the kernel: x=x.npy, x=x.bin or n=16384",
        ),
        size_options,
        click.option("--entry", help="kernel of a C++ SCRIPT; the only one unless given"),
    )


def taken_kernel_options(options: Json) -> Json:
    """Return the values of `kernel_options`, taken out of a command's options: by option."""
    return {option: options.pop(name) for option, (name, _) in _KERNEL_OPTIONS.items()}


def launch_options_of(kernel: JsonMapping) -> "CppLaunchOptions":
    """Return what `taken_kernel_options` took, as a launch takes it."""
    from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions

    values = {field: kernel[option] for option, (_, field) in _KERNEL_OPTIONS.items()}
    return CppLaunchOptions(**{name: v for name, v in values.items() if v is not None})
