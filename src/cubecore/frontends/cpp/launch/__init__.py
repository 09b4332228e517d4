"""Launches of C and C++ kernels: arguments, the child process of the user, and recording."""
