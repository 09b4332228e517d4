"""Slack of each rule: the share of its limit that a tiling uses."""

from cubecore.aliases import Json
from cubecore.tiling.rules.checker import rules
from cubecore.tiling.rules.model import Measure, RuleCase

_BOUNDS = ("<=", "<")
"""Relations that leave room below a limit: those that a bar shows."""


def slack(case: RuleCase) -> list[Json]:
    """Return every rule of the registry, measured: bounds first, the fullest of them on top.

    `share` is used over limit for a bound, and None where a rule asks for exact values or does not
    apply; `holds` is None in the latter case.
    """
    rows = [_row(rule.id, rule.title, rule.measure(case)) for rule in rules()]
    return sorted(rows, key=_sort_key)


def _sort_key(row: Json) -> tuple[int, float]:
    if row["holds"] is None:
        return 2, 0.0
    return (1, 0.0) if row["share"] is None else (0, -row["share"])


def _row(name: str, title: str, measure: Measure | None) -> Json:
    row: Json = {"rule": name, "title": title, "share": None, "holds": None}
    row |= {"used": "", "relation": "", "limit": "", "unit": "", "terms": ""}
    if measure is None or not bool(measure.applies):
        return row
    limit = measure.limit
    options = limit if isinstance(limit, tuple) else (limit,)
    if measure.relation in _BOUNDS and limit > 0:
        row["share"] = float(measure.used / limit)
    return row | {
        "holds": bool(measure.holds()),
        "used": f"{int(measure.used):,}",
        "relation": _WORDS[measure.relation],
        "limit": " or ".join(f"{int(option):,}" for option in dict.fromkeys(options)),
        "unit": measure.unit,
        "terms": _terms(measure),
    }


_WORDS = {
    "<=": " of",
    "<": " of less than",
    ">=": ", at least",
    "==": ", equal to",
    "multiple": ", a multiple of",
    "in": ", one of",
}
"""The sign between `used` and `limit`."""


def _terms(measure: Measure) -> str:
    """Return what the two numbers come from, where that is more than a field."""
    used = measure.terms()
    parts = [used] if " " in used else []
    if measure.limit_terms is not None:
        parts.append(f"limit: {measure.limit_terms()}")
    return "; ".join(parts)
