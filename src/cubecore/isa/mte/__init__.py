"""Instructions of the memory transfer engines: copies, loads to L0, fills."""
