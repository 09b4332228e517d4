"""Advice on a kernel by its counters: one table of rules, each with what it would save."""
