"""Trajectories from samples: recipes, drafting, execution in the sandbox, checks."""
