"""Operator projects: registrations and tiling functions of an op_host, and launches by them."""
