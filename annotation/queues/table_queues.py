"""Queues of rows of tables: review of trajectories by experts, verification of a source's rows, and whether a drawing
would help with a maths problem.

Verdicts are a table: ``expert_reviews`` with one partition per family, which publishing reads, ``verifications`` and
``suitability_reviews`` with one per source. ``reviews.jsonl`` and ``suitability.jsonl`` hold labels for ``darkroom
calibrate``; of suitability yes is an ``accept``, no a ``reject``, and "cannot tell" is skipped.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from darkroom.annotation.label_studio.protocol import TaskServer
from darkroom.annotation.queues import base
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.next_tasks import plain
from darkroom.annotation.rounds.task_exchange import TaskExchange
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.generation.stage import SAMPLES, Shard
from darkroom.pipelines.publishing.judge_stats import reviews_key
from darkroom.pipelines.records import Review, Sample, SuitabilityReview, Trajectory, Verification
from darkroom.pipelines.rl import labels
from darkroom.pipelines.rl.suitability import REVIEWS, VOTES, agreement
from darkroom.pipelines.storage.stage_runs import StageReport, store_rows
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.checks import judge_leak
from darkroom.pipelines.verification.checks.check import JudgedCheck
from darkroom.pipelines.verification.judges.calibration import Calibration

REVIEW = "review"
DISPUTED = "**This answer is disputed:** look closely."
CHECK = "suitability"
"""The check that the labels are for."""
LABELS = {"yes": "accept", "no": "reject"}


@dataclass(frozen=True, slots=True)
class SourceQueue(ABC):
    """A queue of one source's samples; its verdicts are ``table``, of ``kind``, with one partition per source."""

    workspace: Workspace
    campaign: Campaign
    journal: Journal
    source: str

    round: ClassVar[str]
    kind: ClassVar[type[Any]]
    table: ClassVar[tuple[str, ...]]

    @property
    def key(self) -> TableKey:
        return TableKey(self.table, self.source)

    @abstractmethod
    def takes(self, sample: Sample) -> bool:
        """Select the source's samples that belong in this queue."""

    @abstractmethod
    def task(self, sample: Sample) -> Mapping[str, Any]:
        """The data of a sample's task."""

    def samples(self) -> dict[str, Sample]:
        """The source's samples for this queue, by id; empty if it was not materialised."""
        tables = self.workspace.tables
        rows = (row for key in base.shards_of(tables, SAMPLES, self.source) for row in tables.read(key, Sample))
        return {row.sample_id: row for row in rows if row.source == self.source and self.takes(row)}

    def sync(self, server: TaskServer, *, n_rows: int | None = None) -> int:
        """Pull verdicts and hand out a seeded sample (None: all); a larger ``n_rows`` contains the smaller."""
        samples = self.samples()
        selected = base.sample_ids(samples, seed=self.campaign.seed, queue=self.round, n_rows=n_rows)
        return self.hand_out(server, {row: partial(self.task, samples[row]) for row in selected})

    def hand_out(self, server: TaskServer, items: Mapping[str, base.MakeTask]) -> int:
        """Pull verdicts and hand out exactly these items. Raises ``AnnotationError``."""
        return base.sync_queue(TaskExchange(self.journal, server, self.campaign), self.round, items)

    def materialize(self) -> StageReport:
        """Write the source's table; samples without a verdict are not in it."""
        ours, verdicts = self.samples(), base.read_verdicts(self.journal, self.round).verdicts
        rows = [
            self.kind(row.item_id, row.verdict, row.comment, row.person, row.at, row.lead_seconds)
            for row in verdicts
            if row.item_id in ours
        ]
        return store_rows(self.workspace.tables, self.key, self.kind, rows)

    def counts(self) -> Counter[str]:
        return Counter(row.verdict for row in self.workspace.tables.read(self.key, self.kind))


@dataclass(frozen=True, slots=True)
class VerificationQueue(SourceQueue):
    """People judge whether image, question and answer of a sample belong together; samples with a video are skipped."""

    round: ClassVar[str] = "verify"
    kind: ClassVar[type[Verification]] = Verification
    table: ClassVar[tuple[str, ...]] = labels.VERIFICATIONS

    def takes(self, sample: Sample) -> bool:
        return bool(sample.images) and not sample.videos  # the page shows no video

    def task(self, sample: Sample, *, disputed: bool = False) -> Mapping[str, Any]:
        """The page marks a disputed sample, without the reason; images after the first are below the answer."""
        choices = "".join(f"\n\n{plain(choice)}" for choice in sample.choices)
        text = f"**Question:** {plain(sample.question)}{choices}\n\n**Answer:** {plain(sample.answer)}"
        if disputed:
            text += f"\n\n{DISPUTED}"
        urls = [f"/darkroom/images/{image.sha256}" for image in sample.images]
        if len(urls) > 1:
            text = f"**{len(urls)} images:** the first is on the left, the others are below the answer.\n\n{text}"
        for n, url in enumerate(urls[1:], 2):
            text += f"\n\n**Image {n}**\n\n![image {n}]({url})"
        return {"image": urls[0], "question_shown": text}

    def sync_disputed(self, server: TaskServer, disputed: Mapping[str, str]) -> tuple[int, list[str]]:
        """Hand out exactly these samples, marked as disputed; also returns the skipped ones."""
        samples = self.samples()
        items = {row: partial(self.task, samples[row], disputed=True) for row in disputed if row in samples}
        return self.hand_out(server, items), [row for row in disputed if row not in samples]

    def disputed(self) -> dict[str, str]:
        """The source's samples that ``checked_labels`` found disputed, with the evidence; empty without that table."""
        tables = self.workspace.tables
        keys = base.shards_of(tables, (labels.ASSET,), self.source)
        return {row: why for key in keys for row, why in labels.disputed(tables, key).items()}


@dataclass(frozen=True, slots=True)
class SuitabilityQueue(SourceQueue):
    """People judge whether a drawing would help with a problem in words, without seeing the models' votes."""

    category: str = ""

    round: ClassVar[str] = "suitability"
    kind: ClassVar[type[SuitabilityReview]] = SuitabilityReview
    table: ClassVar[tuple[str, ...]] = REVIEWS

    def takes(self, sample: Sample) -> bool:
        return not sample.images and not sample.videos and self.category in ("", sample.category)

    def task(self, sample: Sample) -> Mapping[str, Any]:
        return base.page_task(sample)

    def materialize(self) -> StageReport:
        labels = [
            {"row": v.item_id, "check": CHECK, "verdict": LABELS[v.verdict], "reviewer": v.person, "reason": v.comment}
            for v in base.read_verdicts(self.journal, self.round).verdicts
            if v.verdict in LABELS
        ]
        base.write_labels(self.workspace.annotation / "suitability.jsonl", labels)  # of all sources
        return SourceQueue.materialize(self)  # no `super()` in a dataclass with slots

    def agreement(self) -> Calibration:
        """Majority vote against people (kappa). Raises ``CalibrationError`` for fewer than 20 problems."""
        keys = base.shards_of(self.workspace.tables, (VOTES,), self.source)
        return agreement([Shard(self.workspace, key.partition) for key in keys], [self.source])


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
            for row_id in base.sample_ids(rows, seed=self.campaign.seed, queue=REVIEW, n_rows=n_rows):
                items[row_id] = partial(base.page_task, *rows[row_id])
        return base.sync_queue(TaskExchange(self.journal, server, self.campaign), REVIEW, items)

    def materialize(self, recipes: Sequence[Recipe]) -> dict[str, StageReport]:
        """Write every family's table of reviews, and the lines for calibrating judges."""
        verdicts = {verdict.item_id: verdict for verdict in base.read_verdicts(self.journal, REVIEW).verdicts}
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
