"""The parts that vector instructions share: masks, repeats, forms, lane functions."""
