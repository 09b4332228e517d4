"""The page of ``cubecore --help``: no command is loaded for it, nor is Click."""

PURPOSE = "Plan, check, execute and time matrix kernels for the Ascend (Da Vinci) AI Core."
SUMMARIES = {
    "c++": "Compile C++ kernels and host code to a program that runs on cubecore.",
    "check": (
        "Check the tiling in a file against every rule; --repair finds the nearest legal one."
    ),
    "chips": "List the chips, or the facts about one with their sources.",
    "compare": (
        "Compare the tilings in two files; --report and --trace draw both on one timeline."
    ),
    "env": 'Show the shell\'s settings for CMake projects of kernels: eval "$(cubecore env)".',
    "explain": "Explain a rule, a field of TCubeTiling, an instruction or a finding by its id.",
    "model": "List, plan, time and sum the matrix products of a step of a language model.",
    "plan": "Find a legal, fast TCubeTiling for a product, or for every product in a file.",
    "run": "Execute the kernel instruction by instruction and verify its result.",
    "sample": "Build, run and verify a sample project of kernels, as its README does.",
    "store": "Show, compare or export a store of plans (plan --store).",
    "sweep": "Time a product over values of its shape, its options, its tiling or its chip.",
    "time": "Time a kernel: cycles by pipe, stalls and links.",
    "tune": "Say of a tiling whether it is legal, what it costs and which small changes help.",
    "validate": "Compare the timing model with measurements, case by case.",
}
"""Every command and its summary."""
OPTIONS = {
    "--version": "Show the version and exit.",
    "-h, --help": "Show this message and exit.",
}
_USAGE = "Usage: "


def front_page(program: str, width: int) -> str:
    """Return the page for a program of a name, of lines of at most `width` characters."""
    return "\n".join(
        [
            *_usage(program, width),
            "",
            *_filled(PURPOSE, width, "  ", "  "),
            "",
            "Options:",
            *_table(OPTIONS),
            "",
            "Commands:",
            *_table(_shortened(SUMMARIES, width)),
        ]
    )


def _usage(program: str, width: int) -> list[str]:
    """Return the lines of the usage; behind a long name the arguments have a line of their own."""
    start, arguments = f"{_USAGE}{program} ", "[OPTIONS] COMMAND [ARGS]..."
    if len(start) + 20 <= width:
        return _filled(arguments, width, start, " " * len(start))
    indent = " " * (len(_USAGE) + 4)
    return [start, *_filled(arguments, width, indent, indent)]


def _filled(text: str, width: int, first: str, rest: str) -> list[str]:
    """Return the lines of a text, the first and the others behind their indents."""
    lines, line = [], first
    for word in text.split():
        if line not in (first, rest) and len(line) + len(word) > width:
            lines.append(line.rstrip())
            line = rest
        line += f"{word} "
    return [*lines, line.rstrip()]


def _table(rows: dict[str, str]) -> list[str]:
    width = max(map(len, rows))
    return [f"  {name:{width}}  {text}" for name, text in rows.items()]


def _shortened(summaries: dict[str, str], width: int) -> dict[str, str]:
    """Return the summaries on one line each; the end of a long one is left out."""
    most = width - 6 - max(map(len, summaries))
    return {
        name: text if len(text) <= most else _cut(text, most) for name, text in summaries.items()
    }


def _cut(text: str, most: int) -> str:
    """Return as many words of a text as fit with dots behind them."""
    words = text.split()
    while len(cut := f"{' '.join(words)}...") > most and words:
        words.pop()
    return cut
