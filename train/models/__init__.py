"""Models: loading, generation, the image-only start."""
