"""How the vector unit issues a vector function: what its calls ask of it, when each starts, why."""
