"""Figures that pages of the site state, taken from the pages that evidence them.

A page writes `{{ known.median }}`; the figure is that of docs/validation.md's summary.
"""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_ROW = re.compile(r"^\| ([a-z ]+): [^|]*\| (\S+) \| (\S+) \| (\S+) \|$", re.MULTILINE)
_FIT = re.compile(
    r"^\| ([a-z, -]+) \| (\d+) \| (\S+), (\S+) \| .*? \| (\S+), (\S+) \| (\S+) \|$", re.MULTILINE
)
_FIT_NAMES = {
    "products, tiling published": "known",
    "products of libraries": "library",
    "element-wise kernels, code published": "vector",
    "operators, in no fit": "operator",
    "attention by hand, in no fit": "attention",
    "attention of libraries, in no fit": "attention_library",
}
"""The summary's group of each row of the table of fits that leave a publication out."""
_PARTS = ("cases", "median", "p90", "out_median", "out_p90", "inside")
_FIGURE = re.compile(rf"\{{\{{ ([a-z_]+)\.({'|'.join(_PARTS)}) \}}\}}")


@cache
def stated() -> dict[str, dict[str, str]]:
    """Return what is known of the error of each group of cases.

    Of each group the number of cases, the median and the 90th percentile of the error, the same of
    held-out error, and the share of cases inside their interval. What was held out has all six of
    the same row: small matmuls are a group of their own in the summary alone.
    """
    text = (ROOT / "docs" / "validation.md").read_text("utf-8")
    groups = {
        name.replace(" ", "_"): dict(zip(_PARTS, values, strict=False))
        for name, *values in _ROW.findall(text)
    }
    for name, *values in _FIT.findall(text):
        if name in _FIT_NAMES:
            groups[_FIT_NAMES[name]] = dict(zip(_PARTS, values, strict=True))
    return groups


def filled(text: str) -> str:
    """Return a page with its figures.

    Raises
    ------
    KeyError
        If a page names a figure that the summary does not have.
    """
    return _FIGURE.sub(lambda match: stated()[match[1]][match[2]], text)
