"""The timing model against published measurements."""
