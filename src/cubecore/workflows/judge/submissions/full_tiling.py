"""The full shape without its values: its own tiling function, and what the cores issue.

Arrays have sizes alone, so that a shape fits whose arrays no machine holds, and nothing is
executed. It tells the time, and what overflows a local memory there alone. A submission that looks
at its arrays' values, or a binding that fills them, may not get through.
"""

from collections.abc import Sequence

from cubecore.aliases import Json
from cubecore.errors import TIME_LIMIT, CubecoreError
from cubecore.frontends.kernels.blank_launch import recorded_share
from cubecore.frontends.kernels.session import KernelRun, ScriptSession
from cubecore.frontends.source_locations import InstructionLimitError, KernelError
from cubecore.workflows.judge.blame import is_ours, raised_by
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.submissions.calls import GivenCase, OpenSubmission, StageError
from cubecore.workflows.judge.submissions.case_results import (
    described,
    launches,
    predicted,
    stage_of,
)

_SOME = 6
_TRIES = (0, _SOME)
"""AI Cores that record, 0 for all; some are enough where all would be cut short.

Two of a kind tell the others of it: the first cores often have a tile more than the last ones.
"""
_MOST = 4_000_000
"""Instructions of a call's launches; an eighth of them is timed, in some seconds of CPU time."""
_SPREAD = 2.0
"""The interval of a time of cut launches is so much wider to either side."""


def tiled(called: OpenSubmission, case: GivenCase, options: JudgeOptions) -> Json:
    """Call a submission with arrays that have sizes alone.

    Returns
    -------
    dict
        The ``time`` as predicted, or the ``reason`` why there is none in it; ``refused`` of an
        op_host that refuses the shape; and ``findings`` of local memories that overflow.
    """
    result: Json = {}
    for sampled in _TRIES:
        settings = {**options.launch, "limit": _MOST, "trace": True, "checks": "memcheck"}
        session = ScriptSession(settings, instructions=_MOST, sampled=sampled, blank=True)
        with session.collecting():
            try:
                called.call(case)
            except InstructionLimitError as error:
                result = {"time": {"reason": str(error)}}
                continue
            except (StageError, CubecoreError) as error:
                return _failure(error)
            except Exception as error:
                if is_ours(error):
                    raise
                return {"time": {"reason": raised_by("the submission", error)}}
        result = {"time": _time(session.runs), "findings": launches(session)["findings"]}
        # Of some cores more is recorded of each, where there are more than those.
        more = (len({core.core for core in run.cores}) > _SOME for run in session.runs if run.cut)
        if not any(more):
            break
    return result


def _time(runs: Sequence[KernelRun]) -> Json:
    """Return the time of launches; of those that were cut by the share that they had done."""
    if not runs:
        return {"reason": "it launches no kernel"}
    time = predicted(runs)
    if "us" not in time or not any(run.cut for run in runs):
        return time
    shares = [recorded_share(run) if run.cut else 1.0 for run in runs]
    if None in shares:
        return {"reason": f"{_MOST:,} instructions do not tell which part of the work they are"}
    pairs = zip(time["launches"], shares, strict=True)
    us = sum(each["us"] / share for each, share in pairs if share is not None)
    ends: Json = {"low_us": None, "high_us": None}
    if time["low_us"] is not None:
        ends["low_us"] = us * time["low_us"] / time["us"] / _SPREAD
        ends["high_us"] = us * time["high_us"] / time["us"] * _SPREAD
    part = f"{100 * time['us'] / us:.2g} % of its own tiling"
    points = [{"variant": part, "us": time["us"]}]
    return {**time, "us": us, **ends, "launches": [], "at": "extrapolated", "from": points}


def unfit(result: Json) -> Json | None:
    """Return the error of a submission whose shape alone is refused or overflows; None if not."""
    if "refused" in result:
        refusal: Json = result["refused"]
        return refusal
    beyond = [each for each in result.get("findings", ()) if each["id"] == "out-of-bounds"]
    if not beyond:
        return None
    where = f"{beyond[0]['file']}:{beyond[0]['line']}"
    message = f"{where} ({beyond[0]['function']}): {beyond[0]['message']}"
    return {"stage": "run", "message": message, "detail": ""}


def _failure(error: StageError | CubecoreError) -> Json:
    """Return what a call that fails tells.

    An op_host that refuses the shape does so anywhere, and a kernel that gives a call what it does
    not take. What else fails may do so for want of values.
    """
    plain = error.error if isinstance(error, StageError) else error
    result: Json = {"time": {"reason": str(plain)}, "error": described(plain, "")}
    if isinstance(error, CubecoreError) and error.origin != TIME_LIMIT:
        stage, is_of_call = stage_of(error), isinstance(error, KernelError) and not error.__cause__
        result |= {"refused": described(error, stage)} if stage == "host" or is_of_call else {}
    return result
