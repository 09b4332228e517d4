"""Running programs: memories, cores, engines, and what they find."""
