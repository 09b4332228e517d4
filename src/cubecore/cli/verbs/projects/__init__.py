"""Commands for projects of kernels in C++."""
