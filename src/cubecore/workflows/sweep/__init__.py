"""Many matmuls: queries, stores, worker processes, sweeps."""
