"""Advice about a time or a refusal: its causes in words, and changes that help."""
