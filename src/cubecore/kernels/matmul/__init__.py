"""The matmul kernel that a TCubeTiling implies."""
