"""Plans of matmul kernels in the order of their event timings."""
