"""Pages of the documentation: the path of each rule, instruction, finding, field and word.

Paths are relative to the root of the built site, which `CUBECORE_DOCS` names: an address, or the
folder that `make site` wrote. Nothing else knows them.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

_PAGES = {
    "rule": "rules/{name}.html",
    "instruction": "instructions/{name}.html",
    "register instruction": "registers.html#{anchor}",
    "finding": "findings.html#{anchor}",
    "field": "fields.html#{anchor}",
    "advice": "words.html#advice-{anchor}",
    "kernel advice": "advice.html#{anchor}",
    "term": "words.html#{anchor}",
    "operator": "words.html#operator-{anchor}",
    "chip": "chips.html",
    "class API": "class_api/{section}.html#api-{exact}",
    "TIK": "tik_api.html#tik-{anchor}",
    "change": "words.html#change-{anchor}",
    "not modelled": "instructions.html#names-that-are-not-modelled",
}
"""The page of each kind of name that `explain` knows."""
VARIABLE = "CUBECORE_DOCS"


def anchor(name: str) -> str:
    """Return the anchor of a name on its page; of several words that share a meaning, the first.

    Examples
    --------
    >>> anchor("AI Core, AIC, AIV"), anchor("race-raw")
    ('ai-core', 'race-raw')
    """
    return re.sub(r"[^a-z0-9_*]+", "-", name.split(", ", maxsplit=1)[0].lower()).strip("-")


def page(kind: str, name: str, section: str = "") -> str:
    """Return the page of a name, relative to the site's root; some kinds have several sections."""
    exact = re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")  # And and and are two names
    return _PAGES[kind].format(name=name, anchor=anchor(name), exact=exact, section=section)


def address(kind: str, name: str, section: str = "") -> str | None:
    """Return the address of a name's page; None unless the environment names the site."""
    root = os.environ.get(VARIABLE, "")
    if not root:
        return None
    if "://" not in root:
        root = Path(root).resolve().as_uri()
    return f"{root.rstrip('/')}/{page(kind, name, section)}"


def address_lines(kind: str, names: Iterable[str]) -> list[str]:
    """Return an indented line for each name once, with its page's address; none without a site."""
    links = {name: address(kind, name) for name in names}
    return [f"  {name}: {link}" for name, link in links.items() if link is not None]
