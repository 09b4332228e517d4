"""Answers of the verbs: each one's record, JSON, text, line, rows, card and page in a module."""
