"""Instructions of the Cube unit: matrix products and fixpipe."""
