"""The debugger: breakpoints, dumps, views of fractal matrices."""
