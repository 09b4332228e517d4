"""Results that print as their command prints them, and show as a small table in notebooks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cubecore.errors import RequestError, unable

if TYPE_CHECKING:
    import pandas as pd

    from cubecore.aliases import Json

Figures = tuple[str, Sequence[tuple[str, str]]]
"""A title, and pairs of a name and a value."""
_LONGEST_LINE = 390


class Presented:
    """Base of results: `str` is what the command prints, `repr` one line of it.

    A result says how it looks in `text`, `to_rows` and `_figures`; where it has more, in
    `_remarks`, `_picture` and `_page`.
    """

    __slots__ = ()

    def __init_subclass__(cls, **keys: Any) -> None:
        """Give the subclass the line as its `repr`, which a data class then keeps."""
        super().__init_subclass__(**keys)
        cls.__repr__ = Presented._line  # type: ignore[assignment, method-assign]

    @property
    def text(self) -> str:
        """The lines that the command prints."""
        raise NotImplementedError

    def to_rows(self) -> "list[Json]":
        """Return the rows of the table that ``--csv`` prints and `to_frame` holds."""
        raise NotImplementedError

    def _figures(self) -> Figures:
        """Return the title and the main figures, for the line and the card."""
        raise NotImplementedError

    def _remarks(self) -> Sequence[str]:
        """Return the sentences under the figures of the card."""
        return ()

    def _picture(self) -> str:
        """Return the SVG beside the figures of the card; empty for none."""
        return ""

    def _page(self) -> str:
        """Return the HTML page."""
        raise self._without_page()

    def _without_page(self) -> RequestError:
        return unable(
            "report",
            f"a {type(self).__name__} has no page; plans, times, comparisons, models, tuned "
            "tilings and validations do",
        )

    def __str__(self) -> str:
        """Return what the command prints, without the last line's end."""
        return self.text.rstrip("\n")

    def _line(self) -> str:
        """Return the class and the result in one line of less than 400 characters."""
        title, figures = self._figures()
        pairs = ", ".join(f"{name} {value}" for name, value in figures)
        whole = f"<{type(self).__name__} {title}: {pairs}>"
        return whole if len(whole) <= _LONGEST_LINE else f"{whole[: _LONGEST_LINE - 4]}...>"

    def _repr_html_(self) -> str:
        """Return a table of the main figures beside a picture, for notebooks."""
        from cubecore.presented.card import card_page

        title, figures = self._figures()
        remarks = [("", sentence) for sentence in self._remarks()]
        return card_page(title, [*figures, *remarks], self._picture())

    def report(self, path: str) -> None:
        """Write the page that the command's ``--report`` writes.

        Parameters
        ----------
        path : str
            The file to write; it holds the whole page or is as it was.

        Raises
        ------
        RequestError
            If the file cannot be written, or a result of this kind has no page.
        """
        from datetime import UTC, datetime

        from cubecore.output_files import require_writable, write_whole
        from cubecore.presented.provenance import PageProvenance, with_provenance

        require_writable(path, "report")
        now = datetime.now(UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC")
        made_by = f"report of a {type(self).__name__} in Python"
        write_whole(path, with_provenance(self._page(), PageProvenance(made_by, now, {})), "report")

    def to_frame(self) -> "pd.DataFrame":
        """Return the result's table as a data frame.

        Returns
        -------
        pandas.DataFrame
            A row for each tiling of a plan, pipe of a timing, point of a sweep, finding of a check
            or a run.

        Raises
        ------
        RequestError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise unable("to_frame", "to_frame needs pandas; pip install pandas") from None
        return pd.DataFrame(self.to_rows())
