"""Tracing of TIK: tensors, scalars, loops and branches become a program tree."""
