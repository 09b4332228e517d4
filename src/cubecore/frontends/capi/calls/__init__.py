"""Calls of the C API: bound to instructions, found again, and recorded at once where they recur."""
