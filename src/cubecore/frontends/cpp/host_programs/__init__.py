"""Host programs: a main that launches kernels by `<<<>>>`, and `cubecore c++`, which builds it."""
