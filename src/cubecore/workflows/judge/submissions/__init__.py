"""Submissions: their kinds, and how their kernels are called with the inputs of a case."""
