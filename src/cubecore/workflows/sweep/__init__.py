"""Many products: queries, stores, worker processes, sweeps."""
