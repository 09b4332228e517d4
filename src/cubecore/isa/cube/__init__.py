"""Instructions of the Cube unit: matmuls and fixpipe."""
