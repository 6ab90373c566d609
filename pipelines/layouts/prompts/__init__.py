"""Layouts of the ``rl`` dataset: prompts with answers, graders and what was measured, and a reward file beside them."""
