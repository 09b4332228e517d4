"""The search for the fastest legal tiling."""
