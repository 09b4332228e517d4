"""Functions behind the commands and the Python API: each computes an answer."""
