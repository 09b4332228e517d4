"""Instructions of the scalar unit: registers, caches, synchronisation."""
