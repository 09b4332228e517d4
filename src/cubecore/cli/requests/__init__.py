"""Subjects of verbs beside a matmul: operators, scripts, files of queries and of tilings."""
