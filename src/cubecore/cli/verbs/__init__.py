"""The commands, one a module under its own name; the front page reads their docstrings."""
