"""The page of a tuned tiling: that of its timing, with the rules broken and the changes."""

from dataclasses import replace

from cubecore.errors import unable
from cubecore.reports.html.page import SHOWN_INSTRUCTIONS, page, page_data
from cubecore.reports.text.answers import problem_line
from cubecore.workflows.tune import Tuned


def tuned_page(tuned: Tuned, tiling_from: str = "") -> str:
    """Return the page; `tiling_from` names the file of the tiling.

    Raises
    ------
    RequestError
        If no tiling is legal: there is nothing to draw.
    """
    if tuned.timed is None:
        raise unable("report", "no page: no tiling is legal")
    timed = replace(tuned.timed, changes=tuned.as_changes)
    source = tiling_from if tuned.legal else f"{tiling_from or 'the given tiling'}, repaired"
    data = page_data(timed, source, SHOWN_INSTRUCTIONS)
    rules = [
        {"id": f.rule, "message": f.message, "location": f.source, "count": 1}
        for f in tuned.findings.findings
    ]
    return page(problem_line(tuned.request), {**data, "findings": rules} if rules else data)
