"""Verification of public samples: people judge whether image, question and answer belong together.

The verdicts are the table ``verifications``, one partition per source; unseen samples are not in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from darkroom.annotation.label_studio.protocol import TaskServer
from darkroom.annotation.queues.base import SourceQueue, shards_of
from darkroom.annotation.rounds.label_studio_tasks import plain
from darkroom.annotation.rounds.task_exchange import SyncCounts
from darkroom.pipelines.records import Sample, Verification
from darkroom.pipelines.rl import labels
from darkroom.pipelines.storage.tables import TableKey

ROUND = "verify"
DISPUTED = "**This answer is disputed:** look closely."


@dataclass(frozen=True, slots=True)
class VerificationQueue(SourceQueue):
    """The verification of one source's samples that have images and no video."""

    round: ClassVar[str] = ROUND
    kind: ClassVar[type[Verification]] = Verification

    @property
    def key(self) -> TableKey:
        return TableKey(labels.VERIFICATIONS, self.source)

    def takes(self, sample: Sample) -> bool:
        return bool(sample.images) and not sample.videos  # the page shows no video

    def task(self, sample: Sample, *, disputed: bool = False) -> Mapping[str, Any]:
        """The page says of a disputed sample that it is one, and its data does not say why. The images after the first
        are below the answer."""
        choices = "".join(f"\n\n{plain(choice)}" for choice in sample.choices)
        text = f"**Question:** {plain(sample.question)}{choices}\n\n**Answer:** {plain(sample.answer)}"
        shown = f"{text}\n\n{DISPUTED}" if disputed else text
        urls = [f"/darkroom/images/{image.sha256}" for image in sample.images]
        if len(urls) > 1:
            shown = f"**{len(urls)} images:** the first is on the left, the others are below the answer.\n\n{shown}"
        for n, url in enumerate(urls[1:], 2):
            shown += f"\n\n**Image {n}**\n\n![image {n}]({url})"
        return {"image": urls[0], "question_shown": shown}

    def sync_disputed(self, server: TaskServer, disputed: Mapping[str, str]) -> tuple[SyncCounts, list[str]]:
        """Pulls verdicts and hands out exactly these samples (``sample_id``: why); also returns the skipped ones,
        which are unknown, or have no image or a video.

        People see that the label is disputed, but not the reason, which would bias them. Tasks handed out before stay
        unchanged. Raises ``AnnotationError``.
        """
        samples = self.samples()
        items = {row: partial(self.task, samples[row], disputed=True) for row in disputed if row in samples}
        return self.hand_out(server, items), [row for row in disputed if row not in samples]

    def disputed(self) -> dict[str, str]:
        """The source's samples that ``checked_labels`` found disputed, with the evidence; empty without that table."""
        tables = self.workspace.tables
        keys = shards_of(tables, (labels.ASSET,), self.source)
        return {row: why for key in keys for row, why in labels.disputed(tables, key).items()}
