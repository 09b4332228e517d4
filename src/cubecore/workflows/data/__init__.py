"""Operands and files: reading, storage layouts, verification."""
