"""Kernels in C and C++, compiled on the user's machine and recorded as Python kernels are."""
