"""Boxes that a submission's processes run in: their files, namespaces, system calls and limits."""
