"""Checks of trajectories, graders of answers, and judges."""
