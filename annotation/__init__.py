"""Human annotation in Label Studio: rounds, geometry, quality."""
