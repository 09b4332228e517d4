"""Execution of one core at a time: the definition."""
