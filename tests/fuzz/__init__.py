"""A tester that tries what nobody wrote down: `make fuzz`."""
