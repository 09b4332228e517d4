"""From the C++ runtime to the recorder: numbers of calls and lines, modes, stacks."""
