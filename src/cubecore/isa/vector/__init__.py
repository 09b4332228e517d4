"""Instructions of the Vector unit."""
