"""Operators of vector cores: functions of elements, and functions of rows."""
