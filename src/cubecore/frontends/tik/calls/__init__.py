"""The calls of a Tik object, by family."""
