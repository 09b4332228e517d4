"""Meanings of words: the glossary, register instructions, and names of the C++ and TIK APIs."""
