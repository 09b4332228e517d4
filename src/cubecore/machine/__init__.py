"""Execution of programs: memories, engines, sanitizers, the debugger."""
