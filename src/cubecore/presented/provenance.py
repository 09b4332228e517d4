"""The provenance of a page: the command line, its time, digests of its inputs, chip and version."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from cubecore.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE = '<dl id="provenance"></dl>'
"""The element of a page that the provenance is written to; empty, it is not shown."""
_DIGITS = 16
"""Hexadecimal digits of a digest that are shown: two files differ in them."""


@dataclass(frozen=True, slots=True)
class PageProvenance:
    """The origin of a page: what made it, when, of which inputs, about which chip.

    `inputs` has the SHA-256 of each file that was read, by its name; `chip` is empty for a page
    about several.
    """

    made_by: str
    date: str
    inputs: Mapping[str, str]
    chip: str = ""


def with_provenance(page: str, provenance: PageProvenance) -> str:
    """Return a page with its provenance in the place that it has for it."""
    files = (f"{name} (sha256 {digest[:_DIGITS]})" for name, digest in provenance.inputs.items())
    rows = {
        "made by": provenance.made_by,
        "at": provenance.date,
        "of": ", ".join(files) or "no files",
        "chip": provenance.chip,
        "cubecore": __version__,
    }
    cells = "".join(
        f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in rows.items() if text
    )
    return page.replace(PLACE, PLACE.replace("></", f">{cells}</", 1), 1)
