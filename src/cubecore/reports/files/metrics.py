"""The figures of a timed launch as a file beside its trace or report: everything but the lanes."""

import json

from cubecore.aliases import JsonMapping
from cubecore.version import __version__


def metrics_bytes(chip: str, figures: JsonMapping) -> bytes:
    """Return figures of a chip as a file; equal requests leave equal files."""
    document = {"cubecore": __version__, "chip": chip, **figures}
    return (json.dumps(document, indent=1) + "\n").encode()
