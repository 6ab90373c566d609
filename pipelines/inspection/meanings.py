"""Meaning of every reject reason and flaw with what to do about it, and which rows each family takes.

The texts lie beside this module, outside of what decides rows: editing them makes no table stale.
"""

from pathlib import Path
from typing import Any, NamedTuple

import yaml


class Meaning(NamedTuple):
    """A reason for which a row is not kept, in words."""

    means: str
    do: str
    """Remedy; "Nothing" where the row is rightly left out."""


def reject_reasons() -> dict[str, dict[str, Meaning]]:
    """Every ``Reason``, by the stage that gives it."""
    return _meanings("reject_reasons")


def flaws() -> dict[str, dict[str, Meaning]]:
    """Every ``Flaw`` of a bundled check, by what the check looks at."""
    return _meanings("flaws")


def rows_of_families() -> dict[str, str]:
    """Rows that each bundled family takes, in a sentence."""
    rows: dict[str, str] = _read("families")
    return rows


def _meanings(name: str) -> dict[str, dict[str, Meaning]]:
    groups = _read(name)
    return {group: {reason: Meaning(**words) for reason, words in reasons.items()} for group, reasons in groups.items()}


def _read(name: str) -> Any:
    return yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8"))
