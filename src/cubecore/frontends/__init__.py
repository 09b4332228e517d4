"""Ways to write a kernel: Python with the names of the C API, C and C++, TIK; host tiling."""
