"""The commands of `darkroom annotate` beside the server and the rounds (``annotation/cli.py``)."""
