"""Kernels of our own: the matmul that a TCubeTiling implies, operators."""
