"""Language models as the matrix matmuls of a step, read from Hugging Face configs."""
