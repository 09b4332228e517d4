"""Functions of rows and elements as vector functions: what Ascend 950 runs in registers."""
