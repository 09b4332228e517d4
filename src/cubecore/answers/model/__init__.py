"""The answer of `model`: a step of a language model with its plans, its sums and its looks."""
