"""Rollouts of a model in training: prompts, sandbox, sampling, what they came to, and which of them move the model."""
