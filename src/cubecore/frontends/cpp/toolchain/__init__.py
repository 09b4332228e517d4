"""Compiling C and C++ kernels: scanner, overlay, headers, compiler, cache and programs."""
