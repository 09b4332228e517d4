"""The engine that proves the Cube's matmuls and computes them with BLAS."""
