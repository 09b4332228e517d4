"""Vector instructions that work lane by lane."""
