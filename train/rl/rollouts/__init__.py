"""Rollouts of a model in training: prompts, sandbox, sampling, rewards, advantages and the trainer."""
