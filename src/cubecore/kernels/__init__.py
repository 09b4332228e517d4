"""Kernels: programs made from tilings."""
