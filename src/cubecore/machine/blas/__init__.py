"""The engine that proves Cube products and computes them with BLAS."""
