"""Tasks: their kinds, their cases with expected results, and comparisons with those."""
