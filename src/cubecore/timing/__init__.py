"""Timing programs: pipes, queues, flags, the shared memory system; integer cycles throughout."""
