"""TRL hand-off: SFT and GRPO programs that read the materialised datasets and use the same sandbox."""
