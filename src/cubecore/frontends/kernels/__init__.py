"""Python kernels: the decorator, host tensors, script files, debugging."""
