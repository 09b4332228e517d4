"""Cards of results for notebooks: a title, a table and a small picture, light or dark."""

from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _ROW = 260, 18
_STYLE = "display:flex;gap:2em;align-items:flex-start;font-size:90%;flex-wrap:wrap"


def card_page(title: str, figures: Sequence[tuple[str, str]], picture: str) -> str:
    """Return the fragment: figures in a table, the picture (SVG) beside it."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in figures
    )
    return (
        f"<div><strong>{escape(title)}</strong>"
        f'<div style="{_STYLE}"><table>{rows}</table><div>{picture}</div></div></div>'
    )


def bars(shares: Mapping[str, float], label_width: int = 52) -> str:
    """Return an SVG with a bar for each share, 1 being the whole width."""
    height, x, width = _ROW * len(shares), label_width, _WIDTH - 100
    drawn = [
        f'<text x="0" y="{y + 13}">{escape(name)}</text>'
        f'<rect x="{x}" y="{y + 3}" width="{width:.0f}" height="11" opacity="0.15"/>'
        f'<rect x="{x}" y="{y + 3}" width="{width * min(share, 1):.1f}" height="11" '
        f'opacity="0.65"/><text x="{x + width + 6}" y="{y + 13}">{share:.0%}</text>'
        for y, (name, share) in zip(range(0, height, _ROW), shares.items(), strict=True)
    ]
    return svg(x + width + 48, height, drawn)


def svg(width: float, height: float, drawn: Sequence[str]) -> str:
    """Return a picture in the ink of the page around it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'fill="currentColor" font-size="11" font-family="sans-serif">{"".join(drawn)}</svg>'
    )
