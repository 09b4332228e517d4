"""Answers as text, HTML pages and files for other tools."""
