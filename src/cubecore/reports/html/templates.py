"""Pages as one file: a template with the head that all share, its styles and its script.

A content security policy allows the page's own style sheet and script, by their hashes, and no
network.
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from cubecore.version import __version__

_TEMPLATES = files("cubecore.reports") / "templates"


def rendered(
    name: str, *, title: str, styles: Sequence[str], scripts: Sequence[str] = (), **values: object
) -> str:
    """Return a template as a page: `styles` and `scripts` name files beside it."""
    style = "\n".join(map(_read, styles))
    script = "\n".join(map(_read, scripts))
    allowed = f" script-src {_hash(script)};" if scripts else ""
    template = Environment(
        autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(_read)
    ).get_template(name)
    return template.render(
        title=title,
        version=__version__,
        style=Markup(style),  # noqa: S704 - our own files
        script=Markup(script),  # noqa: S704 - our own files
        policy=f"default-src 'none'; style-src {_hash(style)};{allowed} base-uri 'none'; "
        "form-action 'none'",
        **values,
    )


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return how a content security policy names an inline style or script."""
    return (
        f"'sha256-{b64encode(sha256(text.encode('utf-8', 'backslashreplace')).digest()).decode()}'"
    )
