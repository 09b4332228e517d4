"""Plans of matmul kernels: the search's tilings in the order of their event timings."""
