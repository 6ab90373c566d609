"""Which rows ship, with which sample, and which do not and why: as a few lines with everything in memory say it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NamedTuple

import pytest

from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.publishing.dataset_reader import dataset_files, read_files, split_of
from darkroom.pipelines.publishing.judge_stats import review_checks, reviews_key
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.records import (
    Check,
    ImageRef,
    Observation,
    Provenance,
    Reject,
    Review,
    Round,
    Sample,
    Trajectory,
    Truth,
    Usage,
    to_row,
)
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.selection.sampling import Candidate, difficulty, grouped, ordered
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.matrices import first_quickly

PARTITIONS = [f"made-{n:04}" for n in range(5)]
FACTS = {"n_in": 1, "n_out": 1, "n_retryable": 0, "n_rejected": 0, "n_quarantined": 0, "reasons": {}}
MADE_BY = Provenance("p", "m", "r", "{}", "prompt", "sandbox", 7, "1")


class Shard(NamedTuple):
    """One partition's tables."""

    samples: list[Sample]
    rows: list[Trajectory]


def kind_of(row: Trajectory) -> str:
    return str(len(row.rounds))


def _sample(random: Random, n: int) -> Sample:
    shown = [digest(["image", random.randrange(9)]) for _ in range(random.randrange(3))]
    images = tuple(ImageRef(image, 40, 30, "RGB", "PNG") for image in dict.fromkeys(shown))
    category = random.choice(["text", "colour", ""])
    return Sample(digest(["sample", n]), "made", f"row/{n}", "MIT", images, f"What is {n}?", (), "x", Truth(), category)


def _row(random: Random, sample: Sample) -> Trajectory:
    rounds = tuple(Round(f"{random.random()}", "1", Observation("ok", "1")) for _ in range(random.randrange(3)))
    row_id = digest([sample.sample_id, random.randrange(3)])
    checks = (Check("executes", True),)
    written = ("done", "x", "all_rounds", checks, Usage(1, 2, 3, 0.5), MADE_BY)
    return Trajectory(row_id, sample.sample_id, "crop", "thyme", sample.images, rounds, *written)


def make(random: Random) -> list[Shard]:
    """Partitions that share samples, with other licences, and trajectories; some rows' samples are gone."""
    known = [_sample(random, n) for n in range(30)]
    shards = []
    for name in PARTITIONS:
        samples = [
            replace(sample, license=name, category="other") if random.random() < 0.3 else sample
            for sample in random.sample(known, random.randrange(15))
        ]
        rows = [_row(random, sample) for sample in samples + random.sample(known, 2)]
        shards.append(Shard(samples, list({row.trajectory_id: row for row in rows}.values())))
    return shards


def store(workspace: Workspace, shards: list[Shard], reviews: list[Review]) -> None:
    def write(key: TableKey, kind: type[Any], rows: list[Any]) -> None:
        workspace.tables.write(key, kind, rows, (), inputs="made", facts=FACTS | {"usage": to_row(Usage())})

    for partition, shard in zip(PARTITIONS, shards, strict=True):
        write(TableKey(SAMPLES, partition), Sample, shard.samples)
        for stage in STAGES:
            write(TableKey(("crop", stage), partition), Trajectory, shard.rows if stage in STAGES[-2:] else [])
    write(reviews_key("crop"), Review, reviews)


def _reviews(random: Random, shards: list[Shard]) -> list[Review]:
    ids = sorted({row.trajectory_id for shard in shards for row in shard.rows})
    reviewed = random.sample(ids, min(9, len(ids)))
    return [Review(row_id, "crop", random.random() < 0.5, (), "seen", "ann", "", None) for row_id in reviewed]


class EveryFifth(Screening):
    """Rejects rows by their ids, in another order than theirs."""

    def screen(self, family: str, rows: Collection[tuple[Sample, Trajectory]]) -> dict[str, RowError]:
        assert len(rows) == len(list(rows))  # they can be read again
        ids = [row.trajectory_id for sample, row in rows if sample.sample_id == row.sample_id]
        return {row_id: RowError(Reason.NEAR_DUPLICATE, row_id) for row_id in sorted(ids) if int(row_id, 16) % 5 == 0}

    def same_images(self, images: Iterable[ImageRef], **_: Any) -> dict[str, str]:
        return {}


@dataclass
class Expected:
    """What ships, by id in order, and the rejects as (reason, evidence, check, row)."""

    shards: list[Shard]
    rows: dict[str, Trajectory] = field(default_factory=dict)
    rejects: list[tuple[str, str, str, Trajectory]] = field(default_factory=list)

    @property
    def samples(self) -> Mapping[str, Sample]:
        return {sample.sample_id: sample for shard in self.shards for sample in shard.samples}

    def drop(self, row_id: str, reason: str, evidence: str, check: str = "") -> None:
        self.rejects.append((reason, evidence, check, self.rows.pop(row_id)))

    def gather(self) -> None:
        for name, shard in zip(PARTITIONS, self.shards, strict=True):
            there = {sample.sample_id for sample in shard.samples}
            for row in shard.rows:
                if row.trajectory_id in self.rows:
                    evidence = f"an earlier partition holds the same trajectory; this one is in {name}"
                    self.rejects.append(("duplicate", evidence, "", row))
                elif row.sample_id in there:
                    self.rows[row.trajectory_id] = row
                else:
                    evidence = f"its sample is no longer in {name}; materialise crop for that partition"
                    self.rejects.append(("stale", evidence, "", row))

    def screen(self) -> None:
        for row_id in sorted(self.rows):
            if int(row_id, 16) % 5 == 0:
                self.drop(row_id, "near_duplicate", row_id)

    def review(self, reviews: list[Review]) -> None:
        for row_id, check in review_checks(reviews).items():
            if row_id in self.rows:
                self.rows[row_id] = replace(self.rows[row_id], checks=(*self.rows[row_id].checks, check))
                if not check.passed:
                    self.drop(row_id, "check_failed", check.detail, check.name)

    def balance(self, n_rows: int | None) -> None:
        kinds = sorted({kind_of(row) for row in self.rows.values()})
        if len(kinds) > 1:
            ids = {kind: [row_id for row_id, row in self.rows.items() if kind_of(row) == kind] for kind in kinds}
            n_each = min(map(len, ids.values()))
            n_each = n_each if n_rows is None else min(n_each, -(-n_rows // len(kinds)))
            for kind in kinds:
                self.fill(ids[kind], n_each, f"the quota of rows {kind}, as many as of the rarest kind,")

    def fill(self, ids: list[str], n_rows: int, of: str) -> None:
        samples = [self.samples[self.rows[row_id].sample_id] for row_id in ids]
        candidates = [
            Candidate(row_id, sample.category, difficulty(sample)) for row_id, sample in zip(ids, samples, strict=True)
        ]
        kept = list(ordered(candidates))[:n_rows]
        for row_id in ids:
            if row_id not in kept:
                self.drop(row_id, "not_selected", f"{of} is {n_rows} rows, and others were selected")


def seen(reject: Reject) -> tuple[str, str, str, Any]:
    return reject.reason, reject.evidence, reject.check, json.loads(reject.row)


def shipped_rows(dataset: SftDataset) -> Iterator[tuple[str, str, str, str]]:
    for file in dataset_files(dataset.folder):
        for row in read_files([file]):
            yield split_of(file), row["trajectory_id"], row["license"], row["category"]


@pytest.mark.parametrize("is_balanced", [False, True])
@pytest.mark.parametrize("n_rows", first_quickly([4, None, 11], n_quick=2))
@pytest.mark.parametrize("seed", first_quickly(range(4)))
def test_the_same_rows_ship_and_the_same_are_rejected(
    workspace: Workspace, seed: int, n_rows: int | None, is_balanced: bool
) -> None:
    random = Random(seed)
    shards = make(random)
    reviews = _reviews(random, shards)
    store(workspace, shards, reviews)
    workspace.images.read = lambda ref: b"an image"  # type: ignore[method-assign]
    expected = Expected(shards)
    expected.gather()
    expected.screen()
    expected.review(reviews)
    if is_balanced:
        expected.balance(n_rows)
    if n_rows is not None:
        expected.fill(list(expected.rows), n_rows, "the quota of crop")

    recipe = replace(load_recipes()["crop"], balanced_by=kind_of if is_balanced else None)
    dataset = SftDataset(
        workspace,
        recipe,
        PARTITIONS,
        n_rows=n_rows,
        validation_share=0.4,
        screening=EveryFifth(workspace),
        shard_bytes=20_000,
    )
    report, shipped = dataset.publish()

    assert workspace.tables.read(dataset.key, Trajectory) == list(expected.rows.values())
    rejects = [(*facts, json.loads(json.dumps(to_row(row)))) for *facts, row in expected.rejects]
    assert [seen(reject) for reject in workspace.tables.read_rejects(dataset.key)] == rejects
    assert (report.n_in, report.n_out) == (sum(len(shard.rows) for shard in shards), shipped.n_rows)
    samples = (sample for shard in shards for sample in shard.samples)
    splits = grouped(samples, validation_share=0.4, families=[[row.sample_id for row in expected.rows.values()]])
    in_files = [
        (splits.of(row.sample_id), row_id, sample.license, sample.category)
        for row_id, row in expected.rows.items()
        for sample in [expected.samples[row.sample_id]]
    ]
    assert list(shipped_rows(dataset)) == sorted(in_files, key=lambda row: row[0])
