"""Repair of illegal tilings and explanation of infeasible requests."""
