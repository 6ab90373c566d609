"""What a recipe is: a family of trajectories in one object, run by the one engine (``pipelines/engine.py``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.checks.base import CheckFunction
from pipelines.digest import digest, digest_bytes
from pipelines.images import ImageStore
from pipelines.policies.oracle import Script
from pipelines.prompts import Prompt
from pipelines.protocols.base import Protocol
from pipelines.records import LossPolicy, Sample
from pipelines.tasks import Prepared

_FAMILY = re.compile(r"[a-z][a-z0-9_]*")


class RecipeFault(Exception):
    """A recipe's file is wrong: which file, what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One family.

    ``prepare`` makes a sample ready or raises ``RowFault`` (not_applicable, unsuitable). The prompt's slots are
    ``question``, ``sizes`` and the names in the prepared hint. ``script`` writes the oracle's turns.
    """

    family: str
    description: str
    """For the people who read the asset graph: one sentence, with the source of the facts."""
    file: Path
    """``Path(__file__)`` of the recipe: its digest decides whether finished work still stands."""
    prompt: Prompt
    protocol: Protocol
    prepare: Callable[[Sample, ImageStore], Prepared]
    script: Script
    checks: tuple[CheckFunction, ...]
    loss_policy: LossPolicy = "last_round"
    max_rounds: int = 4
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        if not _FAMILY.fullmatch(self.family):
            raise RecipeFault(f"{self.file}: a family is named in lower case, like 'crop'; found {self.family!r}")
        if not self.checks:
            raise RecipeFault(f"{self.file}: a recipe needs checks; nothing is taken on trust")
        object.__setattr__(self, "digest", digest([digest_bytes(self.file.read_bytes()), self.prompt.digest]))
