"""Operators without a tiling: softmax, norms, attention, ..., alone and as terms of a step."""
