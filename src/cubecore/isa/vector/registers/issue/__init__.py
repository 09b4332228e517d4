"""Issue of a vector function: what its calls ask of it, when each starts, why."""
