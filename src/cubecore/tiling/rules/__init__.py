"""Rules that a legal TCubeTiling meets, each measured."""
