"""The page of a missing address, which hosts answer at any depth of a site."""

import re

_ROOTED = re.compile(r'((?:href|src)=")/')
_BASE = r"""<script>(() => {
const path = location.pathname, base = document.createElement("base");
const version = /^.*?\/(?:dev|\d+(?:\.\d+)*)\/(?:zh\/)?/, plain = /^\/(?:zh\/)?/;
if (path.endsWith("/404.html")) return;
base.href = (path.match(version) || path.match(plain))[0];
document.head.prepend(base);
})();</script>"""
"""A missing page is answered at any depth: its links start at the folder of the version."""


def based(text: str) -> str:
    """Return the page of a missing address with links that start at the folder of its site."""
    text = _ROOTED.sub(r"\1", text).replace(
        'new URL("/",location)', 'new URL(".",document.baseURI)'
    )
    return text.replace("<head>", f"<head>{_BASE}", 1)
