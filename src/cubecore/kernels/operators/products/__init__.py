"""Operators that are matmuls: grouped, quantised, split over K with a cleared result."""
