"""User scripts: running, timing and debugging kernels from files."""
