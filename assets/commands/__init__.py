"""The commands of ``darkroom``, a module per group, listed in ``assets/cli.py``; heavy imports are inside functions."""

from __future__ import annotations

from darkroom.annotation.commands import CONSOLE


def print_line(line: str) -> None:
    """Prints a line without colours or line breaks, so that its paths can be copied."""
    CONSOLE.print(line, markup=False, highlight=False, soft_wrap=True)
