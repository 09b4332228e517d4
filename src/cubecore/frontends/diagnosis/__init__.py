"""Findings of a launch in the words of its source, causes before their consequences."""
