"""Dialects over the same instructions: kernels in Python with the C API's names."""
