"""The memory system: ports, L2 reuse, row alignment."""
