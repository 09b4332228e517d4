"""Sanitizers of cores in lockstep: one for all of a group, or a log by which each is judged."""
