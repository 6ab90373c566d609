"""Decisions of shipped trajectories as a dataset: the prefix, the verified next action, and what decides a reward."""
