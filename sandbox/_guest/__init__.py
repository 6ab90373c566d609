"""The far side of the boundary: launcher -> zygote -> group -> session."""
