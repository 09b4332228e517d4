"""The clock without trees: a core's pipes while it computes tiles of a product, from stages."""
