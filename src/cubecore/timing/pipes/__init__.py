"""Pipes of a core: queues, flags, bank conflicts."""
