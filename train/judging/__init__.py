"""Who judges rollouts, and what is told without a judge: redlines."""
