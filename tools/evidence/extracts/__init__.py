"""Extracts of the documents beside the checkout: ids, numbers and hashes under tests/data."""
