"""Texts as Markdown of the generated pages."""


def escaped(text: str) -> str:
    """Return a text in which no character is a mark of Markdown's."""
    return text.replace("*", r"\*").replace("_", r"\_").replace("<", r"\<")
