"""The Matmul object of C++ kernels: its calls, the program of each, and who serves whom."""
