"""The questions that the command line and the Python API answer."""
