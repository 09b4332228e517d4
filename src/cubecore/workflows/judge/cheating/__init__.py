"""Cheating: the kinds that are looked for, in sources, in launches and in results."""
