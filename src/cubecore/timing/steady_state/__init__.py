"""Steady state: loops whose state recurs are skipped exactly."""
