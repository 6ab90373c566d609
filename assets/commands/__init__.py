"""The commands of ``darkroom``, a module per group; ``assets/cli.py`` lists them. A command imports what it needs."""
