"""Training with TRL: SFT and GRPO on the shipped datasets, with the same sandbox, and evaluation."""
