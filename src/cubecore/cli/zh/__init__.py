"""Texts for people in Chinese: the pairs by section, and how they are looked up."""
