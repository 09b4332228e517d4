"""Checks of execution: races, initialisation, flags, cross-core signals."""
