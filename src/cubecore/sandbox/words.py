"""The words that say which box is asked for."""

from cubecore.errors import one_of, refuse

AUTO, BWRAP, OWN, NONE = "auto", "bwrap", "own", "none"
WORDS = (AUTO, BWRAP, OWN, NONE)


def checked(word: str) -> str:
    """Return a word for a box.

    Raises
    ------
    RequestError
        If there is no such word.
    """
    if word not in WORDS:
        raise refuse("sandbox", one_of(WORDS), repr(word))
    return word
