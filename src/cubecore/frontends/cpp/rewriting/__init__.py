"""What is rewritten before the compiler sees a file, and why."""
