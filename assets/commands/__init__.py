"""The commands of ``darkroom``, a module per group, listed in ``assets/cli.py``; heavy imports are inside functions."""
