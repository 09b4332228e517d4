"""The answer of `explain`: what a name means."""

from dataclasses import dataclass

from cubecore import manual
from cubecore.aliases import Json


@dataclass(frozen=True, slots=True)
class Explanation:
    """The meaning of a name: the kind of thing it is, and its declaration as text.

    `section` is the page of the site that names of its kind are divided into.
    """

    name: str
    kind: str
    text: str
    section: str = ""

    def __str__(self) -> str:
        """Return what the command prints."""
        return self.text.rstrip("\n")

    @property
    def page(self) -> str:
        """The page of the documentation about the name, relative to the site's root."""
        return manual.page(self.kind, self.name, self.section)

    def to_json(self) -> Json:
        """Return the three, and the page about the name, as JSON."""
        return {"name": self.name, "kind": self.kind, "text": self.text, "manual": self.page}

    def to_rows(self) -> list[Json]:
        """Return one row."""
        return [self.to_json()]

    @property
    def linked_text(self) -> str:
        """The text, and the address of the name's page where the site is known."""
        link = manual.address(self.kind, self.name, self.section)
        return self.text + (f"\n{link}\n" if link else "")
