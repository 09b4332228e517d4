"""Advice about a time or a refusal: its causes in words, its interval, changes that help."""
