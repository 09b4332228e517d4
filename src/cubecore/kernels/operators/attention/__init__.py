"""Attention on AI Cores: its sizes, how cores divide it, and the trees of both kinds of cores."""
