"""Answers about many verdicts, and the reward of one."""
