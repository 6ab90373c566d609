"""Reinforcement learning: rollouts, rewards, methods and their judges."""
