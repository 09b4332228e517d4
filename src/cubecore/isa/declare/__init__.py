"""The parts of an instruction's declaration."""
