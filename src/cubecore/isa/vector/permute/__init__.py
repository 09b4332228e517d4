"""Vector instructions that move, gather, sort or reduce lanes."""
