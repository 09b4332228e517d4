"""Checks of a vector function's program: what is wrong with it wherever its operands lie."""
