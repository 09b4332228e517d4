"""The tiling of a plan as C++, with the problem, the chip and the prediction in a comment."""

from cubecore.answers.plan import TilingPlan
from cubecore.errors import unable
from cubecore.presented.text import duration
from cubecore.tiling.model.cpp_source import CONSTANT, FUNCTION, to_header, to_setters
from cubecore.tiling.model.request import problem_line
from cubecore.version import __version__

HEADER, SETTERS = "cpp", "cpp-setters"
"""Forms in which `plan` writes C++."""


def cpp_source(plan: TilingPlan, form: str, name: str | None, namespace: str | None) -> str:
    """Return a plan's tiling as C++: the constant `name`, or a function of that name."""
    us, cycles = plan.predicted.us, plan.predicted.cycles
    time = f"{cycles:,} cycles" if us is None else f"{duration(us)} ({cycles:,} cycles)"
    about = (
        problem_line(plan.request),
        f"Predicted {time} by cubecore {__version__}, limited by {plan.predicted.limited_by}.",
    )
    if form == SETTERS:
        return to_setters(plan.tiling, name or FUNCTION, namespace or "", about)
    return to_header(plan.tiling, name or CONSTANT, namespace or "", about)


def require_cpp(form: str | None, out: str | None, **names: str | None) -> None:
    """Refuse a C++ form for a file of another kind, and names without one."""
    cpp = out is not None and out.endswith((".h", ".hpp"))
    if form is not None and out is not None and not cpp:
        raise unable("--format", f"--format {form} writes .h or .hpp, not {out}")
    for option, value in names.items():
        if value is not None and form is None and not cpp:
            raise unable(f"--{option}", f"--{option} needs --format or an --out of .h or .hpp")
