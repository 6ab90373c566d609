"""A turn of the flywheel: a student writes trajectories for questions that it has not seen.

The student is asked as it was trained: in its protocol's own words, without a hint. Its rows take the way of all rows,
so that sandbox and checks decide which are kept; ``pipelines/publishing/turn_dataset.py`` ships them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from darkroom.pipelines.generation.engine import Family, intake
from darkroom.pipelines.generation.funnel import Funnel, funnel_of
from darkroom.pipelines.generation.recipes import Recipe, without_hints
from darkroom.pipelines.models.policies import Policy
from darkroom.pipelines.sources import Source
from darkroom.pipelines.storage.stage import StageProgress
from darkroom.pipelines.storage.workspace import Workspace


@dataclass(frozen=True, slots=True)
class TurnReport:
    """What a turn gave. ``seconds``: writing, executing and checking; None where a part was done before."""

    funnel: Funnel
    seconds: float | None

    @property
    def n_drafted(self) -> int:
        """Questions that the student was asked, whether or not its first turn could be read."""
        drafts = self.funnel.steps[1]
        return drafts.n_out + sum(drafts.reasons.get(reason, 0) for reason in _WRITTEN)

    @property
    def accepted_share(self) -> float:
        """Kept rows of drafted ones; 0 where none was drafted."""
        return self.funnel.n_accepted / self.n_drafted if self.n_drafted else 0.0

    @property
    def seconds_per_row(self) -> float | None:
        """``seconds`` per kept row; None where one of the two is missing."""
        if self.seconds is None or not self.funnel.n_accepted:
            return None
        return self.seconds / self.funnel.n_accepted


_WRITTEN = ("malformed_turn", "truncated_turn")
"""Rejects of drafts that the student wrote; the others are samples that the family does not take."""


def write_turn(
    workspace: Workspace,
    recipe: Recipe,
    source: Source,
    shard: int,
    partition: str,
    *,
    student: Callable[[], Policy],
    judge: Policy | None = None,
    n_votes: int = 1,
    progress: Callable[[StageProgress], None] | None = None,
) -> TurnReport:
    """The tables of ``partition``, from a shard of ``source``; finished stages are skipped.

    ``student`` opens the policy, once for each stage that asks it. Raises ``PolicyUnavailable``.
    """
    intake(workspace, source, shard, partition)
    family = Family(workspace, without_hints(recipe), partition, progress)
    start = time.monotonic()
    drafts, runs = family.draft(student()), family.run(student())
    family.check(judge, n_votes=n_votes)
    family.keep()
    family.collect_rejects()
    seconds = time.monotonic() - start
    was_resumed = drafts.reused or runs.reused or drafts.performed < drafts.usage.calls
    funnel = funnel_of(workspace.tables, recipe.family, [partition])
    return TurnReport(funnel, None if was_resumed else seconds)
