"""Language models as the matrix products of a step, read from Hugging Face configs."""
