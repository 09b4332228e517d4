"""The author of an exception: cubecore itself, or a task or a submission that was running."""

from pathlib import Path

from cubecore.frontends.source_locations import raised_at

_PACKAGE = str(Path(__file__).resolve().parents[2])


def is_ours(error: BaseException) -> bool:
    """Return whether cubecore's own code raised an error, and nobody else's that it was running."""
    # The innermost frame that is no library's decides whose error it is: cubecore's own code is at
    # fault only where it was not a task's or a submission's that was running. Functions that pass a
    # call on to a library, in the place of its own, say so as for pytest: by `__tracebackhide__`.
    trace, ours = error.__traceback__, False
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name.startswith(_PACKAGE):
            ours = ours or "__tracebackhide__" not in trace.tb_frame.f_locals
        elif "site-packages" not in name and not name.startswith("<"):
            ours = False
        trace = trace.tb_next
    return ours


def goes_further_in(error: BaseException) -> bool:
    """Return whether an error came from behind libraries: others' code, or more of cubecore's.

    False of a call itself that fails, as the function does not take what it is given.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
        if "site-packages" not in trace.tb_frame.f_code.co_filename:
            return True
    return False


def raised_by(whose: str, error: BaseException) -> str:
    """Return the sentence on an exception, with the line that raised it."""
    where = raised_at(error.__traceback__)
    text = f"{whose} raised {type(error).__name__}: {error}"
    return text if where is None else f"{where}: {text}"
