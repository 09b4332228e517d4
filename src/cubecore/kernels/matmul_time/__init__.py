"""When a matmul kernel ends: its launch timed without building or compiling its trees."""
