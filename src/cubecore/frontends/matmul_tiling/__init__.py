"""The vendor's host tiling API: setters that request a TCubeTiling."""
