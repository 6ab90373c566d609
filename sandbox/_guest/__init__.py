"""What runs on the far side of the boundary: launcher -> zygote -> group -> session."""
