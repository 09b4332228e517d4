"""Watches of cores in lockstep: one for all of a group, or notes by which each one is judged."""
