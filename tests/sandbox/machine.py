"""The boxes that this machine has."""

from functools import cache

from cubecore.errors import RequestError
from cubecore.sandbox.box import opened
from cubecore.sandbox.view import BoxView


@cache
def missing(kind: str) -> str:
    """Return why this machine has no box of a kind; nothing if it has."""
    try:
        with opened(kind, BoxView()):
            return ""
    except RequestError as error:
        return str(error)
