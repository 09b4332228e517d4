"""Public suites of operators, run from checkouts that lie outside of the repository."""
