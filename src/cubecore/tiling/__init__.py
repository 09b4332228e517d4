"""Tilings: rules, closed-form cost, solver, repair."""
