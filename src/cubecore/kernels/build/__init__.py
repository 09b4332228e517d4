"""Builders of program trees: flags, loop cursors, folded traces."""
