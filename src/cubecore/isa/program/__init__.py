"""Programs: expressions, trees, launches, recorded traces and their static checks."""
