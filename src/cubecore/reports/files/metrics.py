"""The figures of a timed launch as a file beside its trace or report: everything but the lanes."""

import json

from cubecore.aliases import Json
from cubecore.reports.html.charts.roofline import roofline
from cubecore.version import __version__
from cubecore.workflows.scripts.script import ScriptTime
from cubecore.workflows.time import Timed


def metrics_bytes(timed: Timed) -> bytes:
    """Return the figures of a product: what ``--json`` prints, and the roofline.

    Equal requests leave equal files.
    """
    return _bytes(timed.request.chip.name, _figures(timed))


def pair_metrics_bytes(first: Timed, second: Timed) -> bytes:
    """Return the figures of two runs, as `metrics_bytes` has each."""
    both = {"first": _figures(first), "second": _figures(second)}
    return _bytes(first.request.chip.name, both)


def _figures(timed: Timed) -> Json:
    bounds = roofline(timed.request.problem, timed.request.chip, timed.timeline)
    return {**timed.to_json(), "roofline": bounds}


def launch_metrics_bytes(timed: ScriptTime) -> bytes:
    """Return the figures of every launch of a script."""
    return _bytes(timed.longest.run.chip.name, timed.to_json())


def _bytes(chip: str, figures: Json) -> bytes:
    document = {"cubecore": __version__, "chip": chip, **figures}
    return (json.dumps(document, indent=1) + "\n").encode()
