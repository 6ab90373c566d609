"""Expert review: experts judge a seeded sample of each family's trajectories. Verdicts go to ``expert_reviews``, one
partition per family, which publishing reads, and to ``reviews.jsonl`` for ``darkroom calibrate``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from darkroom.annotation.label_studio.protocol import TaskServer
from darkroom.annotation.queues import base
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.task_exchange import TaskExchange
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.publishing.judge_stats import reviews_key
from darkroom.pipelines.records import Review, Sample, Trajectory
from darkroom.pipelines.storage.stage_runs import StageReport, store_rows
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.checks import judge_leak
from darkroom.pipelines.verification.checks.check import JudgedCheck

ROUND = "review"
BLAMED = {
    "consistency": ("wrong_reasoning", "code_and_text_differ"),
    "judge_effective": ("useless_operation",),
    "answer_judged": ("wrong_answer",),
    "judge_leak": ("leaks",),
}
"""The reject reasons that contradict a judged check."""


@dataclass(frozen=True, slots=True)
class ReviewQueue:
    """The review of some families."""

    workspace: Workspace
    campaign: Campaign
    journal: Journal

    def sync(self, server: TaskServer, recipes: Sequence[Recipe], *, n_rows: int) -> int:
        """Pull verdicts and hand out a seeded sample of each family; a larger ``n_rows`` contains the smaller."""
        items: dict[str, base.MakeTask] = {}
        for recipe in recipes:
            rows = self._trajectories(recipe.family)
            for row_id in base.sample_ids(rows, seed=self.campaign.seed, queue=ROUND, n_rows=n_rows):
                items[row_id] = partial(base.page_task, *rows[row_id])
        return base.sync_queue(TaskExchange(self.journal, server, self.campaign), ROUND, items)

    def materialize(self, recipes: Sequence[Recipe]) -> dict[str, StageReport]:
        """Write every family's table of reviews, and the lines for calibrating judges."""
        verdicts = {verdict.item_id: verdict for verdict in base.read_verdicts(self.journal, ROUND).verdicts}
        reports, labels = {}, []
        for recipe in recipes:
            reviewed = [verdicts[row_id] for row_id in self._trajectories(recipe.family) if row_id in verdicts]
            rows = [_review(recipe.family, verdict) for verdict in reviewed]
            reports[recipe.family] = store_rows(self.workspace.tables, reviews_key(recipe.family), Review, rows)
            labels += [label for verdict in reviewed for label in labels_of(recipe, verdict)]
        base.write_labels(self.workspace.annotation / "reviews.jsonl", labels)
        return reports

    def _trajectories(self, family: str) -> dict[str, tuple[Sample, Trajectory]]:
        tables, trajectories = self.workspace.tables, {}
        for key in base.shards_of(tables, (family, "trajectories")):
            samples = {row.sample_id: row for row in tables.read(TableKey(SAMPLES, key.partition), Sample)}
            for row in tables.read(key, Trajectory):
                if row.sample_id in samples:
                    trajectories[row.trajectory_id] = (samples[row.sample_id], row)
        return trajectories


def _review(family: str, verdict: base.QueueVerdict) -> Review:
    is_accepted, said = verdict.verdict == "accept", (verdict.reasons, verdict.comment)
    return Review(verdict.item_id, family, is_accepted, *said, verdict.person, verdict.at, verdict.lead_seconds)


def labels_of(recipe: Recipe, verdict: base.QueueVerdict) -> Iterator[Mapping[str, Any]]:
    """An acceptance confirms every judged check and ``judge_leak``, a rejection contradicts those that it blames."""
    judged = [check.name for check in recipe.checks if isinstance(check, JudgedCheck)]
    for name in dict.fromkeys([*judged, judge_leak.name]):
        blamed = set(BLAMED.get(name, ())) & set(verdict.reasons)
        if verdict.verdict == "accept" or blamed:
            yield {
                "row": verdict.item_id,
                "family": recipe.family,
                "check": name,
                "verdict": verdict.verdict,
                "reviewer": verdict.person,
                "reason": "; ".join([*sorted(blamed), *([verdict.comment] if verdict.comment else [])]),
            }
