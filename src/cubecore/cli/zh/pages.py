"""HTML pages in Chinese: a page gets the words and a script that puts them in place of its texts.

Pages are made in English by reports, which know no language. Much of a page is written by its own
script, from data; so what is translated is what the reader sees, text by text. The page's content
security policy allows the script by its hash, and still no network.
"""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape, unescape

from cubecore.cli.zh.translation import catalogue
from cubecore.package_data import packaged

_OF_FINDINGS = ("report", "advice", "findings")
_SECTIONS = {"page": ("report",), "findings": _OF_FINDINGS}
"""The sections that texts of a page are looked up in, and those of its findings and advice."""
_POLICY = re.compile(r'(?<=Content-Security-Policy" content=")([^"]*)')
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_DATA = '<script type="application/json" id="data">'


def chinese_page(page: str) -> str:
    """Return a page whose texts are shown in Chinese; those without a translation stay English."""
    script = packaged("cli", "zh", "words.js").read_text("utf-8")
    allowed = b64encode(sha256(script.encode()).digest()).decode()
    page = _POLICY.sub(lambda found: _allowing(found[1], f"'sha256-{allowed}'"), page, count=1)
    added = f'<script type="application/json" id="words">{_words()}</script>\n'
    added += f"<script>{script}</script>\n"
    # Before the page's own script, which is the last thing in it: what that draws is seen as well.
    before = _DATA if _DATA in page else "</body>"
    head, mark, tail = page.rpartition(before)
    return f"{head}{added}{mark}{tail}"


def _allowing(policy: str, script: str) -> str:
    """Return a page's policy, as it stands in an attribute, with one script more."""
    text = unescape(policy)
    if "script-src " in text:
        text = text.replace("script-src ", f"script-src {script} ", 1)
    else:
        text += f"; script-src {script}"
    return escape(text)


def _words() -> str:
    """Return whole texts and templates as JSON that nothing in a script element can end."""
    words = {
        name: {
            "whole": [pair for pair in pairs if "{" not in pair[0]],
            "templates": [pair for pair in pairs if "{" in pair[0]],
        }
        for name, sections in _SECTIONS.items()
        for pairs in [[pair for each in sections for pair in catalogue(each).items()]]
    }
    return json.dumps(words, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)
