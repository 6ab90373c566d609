"""Evaluation: questions of any origin put to any policy, and what its rollouts tell beyond their answers."""
