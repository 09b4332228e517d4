"""Timing: programs to cycles, stalls and a critical path."""
