"""What a recipe is: a family of trajectories in one object, run by the one engine (``pipelines/engine.py``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pipelines.checks.base import CheckFunction
from pipelines.checks.necessity import Necessity
from pipelines.digest import digest, digest_bytes
from pipelines.images import ImageStore
from pipelines.policies.base import Turn
from pipelines.policies.oracle import Script
from pipelines.prompts import Prompt
from pipelines.protocols.base import Protocol
from pipelines.records import LossPolicy, Round, Sample
from pipelines.selection import mixture
from pipelines.tasks import Prepared, Task
from pipelines.unaided import script as answer_unaided

_FAMILY = re.compile(r"[a-z][a-z0-9_]*")
Writer = Literal["draft", "convert"]
"""Who writes a family's trajectories: the drafting policy, or the one that converts what was drafted."""


class RecipeFault(Exception):
    """A recipe's file is wrong: which file, what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the drafting policy writes before the trajectory, and no trajectory shows: a decision, a long solution.

    The prompt's slots are ``question`` and ``sizes``, so families with the same plan pay for it once.
    """

    prompt: Prompt
    read: Callable[[str, Sample], Mapping[str, Any]]
    """What the plan says, as slots of the recipe's prompt (JSON). Raises ``RowFault`` when it rules the sample out."""
    script: Script
    """The oracle's."""
    schema: Mapping[str, Any] | None = None
    """The JSON schema of a plan that is JSON; endpoints that know it hold to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One family.

    ``prepare`` makes a sample ready or raises ``RowFault`` (not_applicable, unsuitable). The prompt's slots are
    ``question``, ``sizes``, ``videos`` and the names in the prepared hint. ``script`` writes the oracle's turns.
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
    plan: Plan | None = None
    writer: Writer = "draft"
    follow_up: Callable[[Task, tuple[Round, ...]], str] | None = None
    """What the policy is told beside an observation, privileged like the hint: the trajectory does not show it."""
    n_wanted: int | None = None
    """Rows of the published mixture (Thyme App. B), from which default quotas are scaled."""
    necessity: Necessity | None = None
    """How it is measured whether rows need their image and their tools, where that costs nothing or is asked for."""
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        if not _FAMILY.fullmatch(self.family):
            raise RecipeFault(f"{self.file}: a family is named in lower case, like 'crop'; found {self.family!r}")
        if not self.checks:
            raise RecipeFault(f"{self.file}: a recipe needs checks; nothing is taken on trust")
        prompts = [self.prompt.digest, *([self.plan.prompt.digest] if self.plan else [])]
        object.__setattr__(self, "digest", digest([digest_bytes(self.file.read_bytes()), *prompts]))

    def oracle(self, turn: Turn) -> str:
        """The oracle's next turn: the plan's, an answer without aid, or the trajectory's."""
        if turn.task.stage == "unaided":
            return answer_unaided(turn)
        if turn.task.stage == "plan" and self.plan is not None:
            return self.plan.script(turn)
        return self.script(turn)


def quotas(recipes: Sequence[Recipe], *, n_rows: int | None) -> dict[str, int]:
    """``n_rows`` in the published mixture, over the families that are in it; none without a number."""
    if n_rows is None:
        return {}
    return mixture({recipe.family: recipe.n_wanted for recipe in recipes if recipe.n_wanted}, n_rows)
