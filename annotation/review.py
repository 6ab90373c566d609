"""Expert review: a seeded sample of each family's trajectories goes to people, and their verdicts come back as a check.

The verdicts lie in ``expert_reviews``, one table a family, where the shipping of datasets finds them
(``pipelines/reviews.py``), and as lines of ``reviews.jsonl`` for ``darkroom calibrate``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from annotation.campaign import Campaign
from annotation.handover import Handover, Synced
from annotation.journal import Journal
from annotation.pages import trajectory_page
from annotation.queues import MakeTask, Verdict, read_verdicts, sync_queue
from annotation.studio import Studio
from pipelines.checks.base import JudgedCheck
from pipelines.digest import digest
from pipelines.engine import SAMPLES
from pipelines.recipes import Recipe
from pipelines.records import Review, Sample, Trajectory, to_row
from pipelines.reviews import reviews_key
from pipelines.stages import Outcome, Report, run_stage
from pipelines.tables import TableKey
from pipelines.workspace import Workspace

ROUND = "review"
BLAMED = {
    "consistency": ("wrong_reasoning", "code_and_text_differ"),
    "judge_effective": ("useless_operation",),
    "answer_judged": ("wrong_answer",),
}
"""Which reasons of an expert speak against which judged check."""


@dataclass(frozen=True, slots=True)
class Found:
    """A trajectory with its sample and where it was found."""

    sample: Sample
    trajectory: Trajectory


@dataclass(frozen=True, slots=True)
class ReviewQueue:
    """The review of some families."""

    workspace: Workspace
    campaign: Campaign
    journal: Journal

    def sync(self, studio: Studio, recipes: Sequence[Recipe], *, n_rows: int) -> Synced:
        """Hands out ``n_rows`` of each family, chosen by the campaign's seed, and takes verdicts in.

        A larger number later keeps those that were chosen before. Raises ``AnnotationFault``.
        """
        items: dict[str, MakeTask] = {}
        for recipe in recipes:
            for found in self._chosen(recipe.family, n_rows):
                items[found.trajectory.trajectory_id] = partial(_task, found)
        return sync_queue(Handover(self.journal, studio, self.campaign.name), ROUND, items)

    def materialize(self, recipes: Sequence[Recipe]) -> dict[str, Report]:
        """The table of every family's reviews, and the lines for calibrating judges."""
        verdicts = {verdict.item_id: verdict for verdict in read_verdicts(self.journal, ROUND).verdicts}
        reports, lines = {}, []
        for recipe in recipes:
            found = [
                (one, verdicts[one.trajectory.trajectory_id])
                for one in self._trajectories(recipe.family)
                if one.trajectory.trajectory_id in verdicts
            ]
            rows = [_review(recipe.family, verdict) for _, verdict in found]
            key = reviews_key(recipe.family)
            inputs = digest([to_row(row) for row in rows])
            perform = partial(Outcome, rows, (), len(rows))
            reports[recipe.family] = run_stage(self.workspace.tables, key, Review, inputs=inputs, perform=perform)
            lines += [line for _, verdict in found for line in labels_of(recipe, verdict)]
        self.labels.parent.mkdir(parents=True, exist_ok=True)
        self.labels.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
        return reports

    @property
    def labels(self) -> Path:
        """Where the lines for ``darkroom calibrate`` lie."""
        return self.workspace.annotation / "reviews.jsonl"

    def _chosen(self, family: str, n_rows: int) -> list[Found]:
        found = {one.trajectory.trajectory_id: one for one in self._trajectories(family)}
        ranked = sorted(found, key=lambda row: digest([self.campaign.seed, "review", row]))
        return [found[row] for row in ranked[:n_rows]]

    def _trajectories(self, family: str) -> Iterator[Found]:
        tables = self.workspace.tables
        for path in sorted((tables.root / family / "trajectories").glob("*.parquet")):
            if path.name.endswith(".rejects.parquet"):
                continue
            samples = {one.sample_id: one for one in tables.read(TableKey(SAMPLES, path.stem), Sample)}
            for row in tables.read(TableKey((family, "trajectories"), path.stem), Trajectory):
                if row.sample_id in samples:
                    yield Found(samples[row.sample_id], row)


def labels_of(recipe: Recipe, verdict: Verdict) -> Iterator[Mapping[str, Any]]:
    """What a verdict says of the family's judged checks: an acceptance speaks for all, a rejection against those that
    its reasons blame."""
    judged = [check.name for check in recipe.checks if isinstance(check, JudgedCheck)]
    for name in judged:
        blamed = set(BLAMED.get(name, ())) & set(verdict.reasons)
        if verdict.chosen == "accept" or blamed:
            yield {
                "row": verdict.item_id,
                "family": recipe.family,
                "check": name,
                "verdict": verdict.chosen,
                "reviewer": verdict.person,
                "reason": "; ".join([*sorted(blamed), *([verdict.comment] if verdict.comment else [])]),
            }


def _task(found: Found) -> dict[str, Any]:
    return {"page": trajectory_page(found.sample, found.trajectory)}


def _review(family: str, verdict: Verdict) -> Review:
    return Review(
        trajectory_id=verdict.item_id,
        family=family,
        accepted=verdict.chosen == "accept",
        reasons=verdict.reasons,
        comment=verdict.comment,
        reviewer=verdict.person,
        at=verdict.at,
        lead_seconds=verdict.lead_seconds,
    )
