"""The time of a matmul kernel's launch, without building or compiling its trees."""
