"""Evaluation: questions of any origin put to any policy, and figures of its rollouts beyond their answers."""
