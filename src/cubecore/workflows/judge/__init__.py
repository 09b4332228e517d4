"""Submissions judged against a task: their values, their findings, their predicted time."""
