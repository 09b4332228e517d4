"""Register instructions in Python kernels: vector functions, registers, and their calls."""
