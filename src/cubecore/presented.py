"""Results that print as their command prints them, and show as a small table in notebooks.

How a result looks belongs to `cubecore.reports`, which imports the results; it is loaded when a
result is shown, never before.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


class Presented:
    """Base of results: `str` is what the command prints, `repr` one line of it."""

    __slots__ = ()

    def __init_subclass__(cls, **keys: Any) -> None:
        """Give the subclass the line as its `repr`, which a data class then keeps."""
        super().__init_subclass__(**keys)
        cls.__repr__ = Presented._line  # type: ignore[assignment, method-assign]

    def __str__(self) -> str:
        """Return what the command prints."""
        return str(_presenters().text(self))

    def _line(self) -> str:
        """Return the class and the result in one line."""
        return str(_presenters().line(self))

    def _repr_html_(self) -> str:
        """Return a table with a picture, for notebooks."""
        return str(_presenters().card(self))

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
        _presenters().report(self, path)

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
        return _presenters().frame(self)


def _presenters() -> Any:
    return import_module("cubecore.reports.presenters")
