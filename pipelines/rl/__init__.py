"""RL data: candidates, checked labels, pass rates, tool necessity, suitability, and the dataset that they make."""
