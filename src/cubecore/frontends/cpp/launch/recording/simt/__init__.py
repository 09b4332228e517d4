"""Calls of threads (SIMT) in the process of a launch: their memory, and what they leave."""
