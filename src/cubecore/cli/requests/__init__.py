"""Subjects of verbs beside a product: operators, scripts, files of queries and of tilings."""
