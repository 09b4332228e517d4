"""Register instructions by family, each declared once."""
