"""The closed form: predicted cycles of a tiling, for one or many at a time."""
