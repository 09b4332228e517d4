"""Commands about this program: help, completion, and what it finds on this machine."""
