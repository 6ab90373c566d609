"""What the assets' pages show."""
