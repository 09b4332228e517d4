"""The full shape without its values: its own tiling function, and what the cores issue.

Arrays have sizes alone, so that a shape fits whose arrays no machine holds, and nothing is
executed. It tells the time, and what overflows a local memory there alone. A submission that looks
at its arrays' values, or a binding that fills them, may not get through.
"""

from cubecore.aliases import Json
from cubecore.errors import TIME_LIMIT, CubecoreError
from cubecore.frontends.kernels.session import ScriptSession
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
from cubecore.workflows.judge.submissions.full_shape import SAMPLED_BLOCKS

_TRIES = ((0, 200_000), (SAMPLED_BLOCKS, 600_000))
"""AI Cores that record, 0 for all, and how many instructions they may: seconds of CPU time."""


def tiled(called: OpenSubmission, case: GivenCase, options: JudgeOptions) -> Json:
    """Call a submission with arrays that have sizes alone.

    Returns
    -------
    dict
        The ``time`` as predicted, or the ``reason`` why there is none in it; ``refused`` of an
        op_host that refuses the shape; and ``findings`` of local memories that overflow.
    """
    reason = ""
    for sampled, most in _TRIES:
        settings = {**options.launch, "limit": most, "trace": True, "checks": "memcheck"}
        session = ScriptSession(settings, instructions=most, sampled=sampled, blank=True)
        with session.collecting():
            try:
                called.call(case)
            except InstructionLimitError:
                reason = f"its cores issue more than {most:,} instructions"
                continue
            except (StageError, CubecoreError) as error:
                return _failure(error)
            except Exception as error:
                if is_ours(error):
                    raise
                return {"time": {"reason": raised_by("the submission", error)}}
        time = predicted(session.runs) if session.runs else {"reason": "it launches no kernel"}
        return {"time": time, "findings": launches(session)["findings"]}
    return {"time": {"reason": reason}}


def unfit(left: Json) -> Json | None:
    """Return the error of a submission whose shape alone is refused or overflows; None if not."""
    if "refused" in left:
        refusal: Json = left["refused"]
        return refusal
    beyond = [each for each in left.get("findings", ()) if each["id"] == "out-of-bounds"]
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
    told: Json = {"time": {"reason": str(plain)}}
    if isinstance(error, CubecoreError) and error.origin != TIME_LIMIT:
        stage, is_of_call = stage_of(error), isinstance(error, KernelError) and not error.__cause__
        told |= {"refused": described(error, stage)} if stage == "host" or is_of_call else {}
    return told
