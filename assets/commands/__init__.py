"""The commands of ``darkroom``, a module per group, in ``assets/commands.yaml``; heavy imports are inside functions."""
