"""The answers of `compare`: two tilings of one problem, or two saved results."""
