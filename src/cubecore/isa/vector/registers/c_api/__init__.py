"""Names of the C API for register instructions, which headers of C and calls of Python read."""
