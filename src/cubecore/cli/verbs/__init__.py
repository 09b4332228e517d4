"""The commands, one a module under its own name, and parts that some of them share."""
