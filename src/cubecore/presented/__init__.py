"""Looks that every answer shares: text in columns, one line, a card of a notebook, rows."""

from cubecore.presented.answer import Figures, Presented

__all__ = ["Figures", "Presented"]
