"""The C API in Python: constants, pointers, the handle of a core, binding of calls."""
