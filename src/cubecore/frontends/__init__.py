"""Ways to write a kernel: Python with the names of the C API, TIK, the host tiling API."""
