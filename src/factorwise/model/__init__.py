"""Templates, the model that adds them up, and what grounds them into flat arrays."""
