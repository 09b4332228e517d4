"""The Vector unit's instructions."""
