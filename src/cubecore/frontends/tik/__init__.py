"""TIK, the vendor's Python kernel language: programs traced once into trees of instructions."""
