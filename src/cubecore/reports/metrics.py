"""The figures of a timed launch as a file beside its trace or report: everything but the lanes."""

import json
from typing import Any

from cubecore import __version__
from cubecore.reports.roofline import roofline
from cubecore.workflows.script import ScriptTime
from cubecore.workflows.time import Timed


def metrics_bytes(timed: Timed) -> bytes:
    """Return the figures of a product: what ``--json`` prints, and the roofline.

    Equal requests leave equal files.
    """
    request = timed.request
    found = roofline(request.problem, request.chip, timed.timeline)
    return _bytes(request.chip.name, {**timed.to_json(), "roofline": found})


def launch_metrics_bytes(timed: ScriptTime) -> bytes:
    """Return the figures of every launch of a script."""
    return _bytes(timed.longest.run.chip.name, timed.to_json())


def _bytes(chip: str, figures: dict[str, Any]) -> bytes:
    document = {"cubecore": __version__, "chip": chip, **figures}
    return (json.dumps(document, indent=1) + "\n").encode()
