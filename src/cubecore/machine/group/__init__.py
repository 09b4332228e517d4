"""Execution of equal cores together, over stacked memories."""
