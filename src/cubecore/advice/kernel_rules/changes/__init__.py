"""Launches with one thing changed, which rules of advice have timed."""
