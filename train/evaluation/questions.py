"""What is asked: questions of an exported dataset or of a benchmark, each with how its answers are scored.

A question may be asked in several forms (HR-Bench moves its choices on): forms that show the same pictures, ask the
same and offer the same choices are one ``group``, and only groups are independent of one another.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.answers import split_choice
from pipelines.digest import digest
from pipelines.export import FEATURES as TRAJECTORIES
from pipelines.grading import grader_of
from pipelines.images import ImageStore
from pipelines.intake import take_in
from pipelines.records import Grader, Sample, Truth, TruthBox, from_row
from pipelines.rejects import RowFault
from pipelines.rl.export import FEATURES as PROMPTS
from pipelines.sources import BadRow, Source, SourceFault, SourceRow
from pipelines.splits import SPLITS
from pipelines.worked import details_of
from train.evaluation.benchmarks import BenchmarkConfig, Scoring
from train.faults import TrainFault


@dataclass(frozen=True, slots=True)
class Question:
    """A sample as it is asked. ``grader`` None: by the first rule that can read the answer.

    ``protocol`` and ``mode`` are set where the question comes with them (rows of an SFT dataset).
    """

    benchmark: str
    sample: Sample
    grader: Grader | None = None
    scoring: Scoring = "grader"
    accepted: tuple[str, ...] = ()
    cycle: str = ""
    protocol: str = ""
    mode: str = ""

    @property
    def group(self) -> str:
        """The question itself, whatever the order of its choices."""
        sample = self.sample
        shown = [image.sha256 for image in sample.images] + [video.sha256 for video in sample.videos]
        texts = sorted(split_choice(choice)[1] for choice in sample.choices)
        alone = [] if texts else [sample.sample_id]
        return digest([self.benchmark, shown, sample.question, texts, *alone])


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of one origin; ``left_out`` counts the rows that are none, by reason."""

    name: str
    questions: tuple[Question, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)


def of_benchmark(name: str, config: BenchmarkConfig, store: ImageStore, *, limit: int | None = None) -> Asked:
    """The rows of a benchmark through intake, the first ``limit`` of them. Raises ``TrainFault``."""
    try:
        taken = take_in(_Limited(config.open(name), limit), 0, store)
    except SourceFault as fault:
        raise TrainFault(f"benchmark {name!r}: {fault}") from fault
    questions = tuple(_of_benchmark(sample, config) for sample in taken.samples)
    return Asked(name, questions, Counter(str(reject.reason) for reject in taken.rejects))


def of_source(source: Source, store: ImageStore, *, limit: int | None = None) -> Asked:
    """The first ``limit`` rows of a source of the catalog, through intake. Raises ``TrainFault``."""
    questions: list[Question] = []
    left_out: Counter[str] = Counter()
    for shard in range(source.n_shards):
        left = None if limit is None else limit - len(questions) - left_out.total()
        try:
            taken = take_in(_Limited(source, left), shard, store)
        except SourceFault as fault:
            raise TrainFault(f"source {source.name!r}: {fault}") from fault
        questions += [Question(source.name, sample, _grader(sample)) for sample in taken.samples]
        left_out.update(str(reject.reason) for reject in taken.rejects)
    return Asked(source.name, tuple(questions), left_out)


def of_dataset(folder: Path, store: ImageStore, *, split: str = "validation", limit: int | None = None) -> Asked:
    """The first ``limit`` questions of an RL or an SFT dataset's split (``all``: of every split), each once.

    Raises ``TrainFault`` for a folder that is neither and for a split without rows.
    """
    read = _reader(folder, split)
    found: dict[str, Question] = {}
    for row in _rows(folder, split):
        if row["sample_id"] not in found and (limit is None or len(found) < limit):
            found[row["sample_id"]] = read(folder.name, row, store)
    return Asked(folder.name, tuple(found.values()))


class _Limited:
    """A source, up to ``limit`` rows of a shard."""

    def __init__(self, source: Source, limit: int | None) -> None:
        self._source, self._limit = source, limit
        self.name, self.n_shards, self.fingerprint = source.name, source.n_shards, source.fingerprint

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """The shard's first rows."""
        return islice(self._source.rows(shard), self._limit)


def _of_benchmark(sample: Sample, config: BenchmarkConfig) -> Question:
    details = details_of(sample)
    accepted = details.get(config.accepted) if config.accepted else None
    cycle = details.get(config.cycle) if config.cycle else None
    return Question(
        benchmark=sample.source,
        sample=sample,
        grader=None if config.scoring == "anls" else _grader(sample),
        scoring=config.scoring,
        accepted=tuple(map(str, _listed(accepted))) or (sample.answer,),
        cycle="" if cycle is None else str(cycle),
    )


def _listed(value: Any) -> list[Any]:
    """Accepted answers as a list; a text may spell one as JSON."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return [value]
    return value if isinstance(value, list) else [] if value is None else [value]


def _grader(sample: Sample) -> Grader | None:
    try:
        return grader_of(sample)
    except RowFault:
        return None  # no rule of its own: the first that can read the answer


def _reader(folder: Path, split: str) -> Callable[[str, Mapping[str, Any], ImageStore], Question]:
    names = set(pq.read_schema(_files(folder, split)[0]).names)
    if names == set(PROMPTS):
        return _of_prompt
    if names == set(TRAJECTORIES):
        return _of_trajectory
    raise TrainFault(
        f"{folder} is neither an RL nor an SFT dataset: it has the columns {', '.join(sorted(names))}. For somebody "
        "else's files write a mapping: --benchmark NAME=FILE.yaml"
    )


def _rows(folder: Path, split: str) -> Iterator[dict[str, Any]]:
    wanted = {path.name for path in _files(folder, split)}
    for path in sorted(folder.glob("*.parquet")):
        if path.name in wanted:
            with pq.ParquetFile(path) as opened:
                for batch in opened.iter_batches(batch_size=8):
                    yield from batch.to_pylist()


def _files(folder: Path, split: str) -> list[Path]:
    if not folder.is_dir():
        raise TrainFault(f"no dataset folder {folder}: materialise `rl_dataset` or `sft_dataset`, or name its folder")
    by_split: dict[str, list[Path]] = {name: sorted(folder.glob(f"{name}-*.parquet")) for name in SPLITS}
    found = [path for name, paths in by_split.items() if split in (name, "all") for path in paths]
    if not any(pq.read_metadata(path).num_rows for path in found):
        there = ", ".join(name for name, files in by_split.items() if files) or "none"
        raise TrainFault(f"{folder} has no rows in the split {split!r} (it has: {there}); name another with --split")
    return found


def _of_prompt(name: str, row: Mapping[str, Any], store: ImageStore) -> Question:
    boxes = tuple(from_row(TruthBox, box) for box in row["boxes"])
    sample = _sample(row, row["images"], store, boxes=boxes, category=row["category"])
    return Question(name, sample, from_row(Grader, row["grader"]))


def _of_trajectory(name: str, row: Mapping[str, Any], store: ImageStore) -> Question:
    """The answer of a shipped trajectory passed the check against the gold answer: it stands for it."""
    images = row["images"][: row["n_question_images"]]
    sample = _sample(row, images, store, boxes=(), category=row["family"])
    return Question(name, sample, _grader(sample), protocol=row["protocol"], mode=row["mode"])


def _sample(
    row: Mapping[str, Any], images: list[Any], store: ImageStore, *, boxes: tuple[TruthBox, ...], category: str
) -> Sample:
    return Sample(
        sample_id=row["sample_id"],
        source=row["source"],
        source_row=row["source_row"],
        license=row["license"],
        images=tuple(store.ingest(image["bytes"]) for image in images),
        question=row["question"],
        choices=tuple(row["choices"]),
        answer=row["answer"],
        truth=Truth(boxes=boxes),
        category=category,
        videos=tuple(store.add_video(video["bytes"]) for video in row["videos"] or ()),
    )
