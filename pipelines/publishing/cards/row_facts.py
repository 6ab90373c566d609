"""Facts for cards, gathered row by row: counts, sums of scores, and a release's checks."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import CheckedLabel, RLRow, Sample, Trajectory
from darkroom.pipelines.records.annotation import Annotators, asked, measured_on, writer_in_words
from darkroom.pipelines.records.digest import key64
from darkroom.pipelines.records.samples import right_answers
from darkroom.pipelines.rl import labels
from darkroom.pipelines.rl.facts import shards_with
from darkroom.pipelines.sources.answers import EQUALLY_FREQUENT, MOST_FREQUENT
from darkroom.pipelines.sources.catalog import source_of
from darkroom.pipelines.sources.ingest import in_words
from darkroom.pipelines.storage.media_validation import derived_steps
from darkroom.pipelines.storage.row_files import KeyedSpill
from darkroom.pipelines.storage.tables import TableKey, Tables
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.checks.crop import FirstLooks, first_looks, look_scores

_NOT_MEASURED = "not measured"
_AUTHOR = "question and answer"


@dataclass
class SampleFacts:
    """Counts over the samples of rows."""

    n_rows: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    licenses: Counter[str] = field(default_factory=Counter)
    categories: Counter[str] = field(default_factory=Counter)
    choices: Sequence[str] = ()
    """From ``intake_choices``."""
    derived: Counter[str] = field(default_factory=Counter)
    """Rows by what intake changed about their images and videos."""

    def add(self, row: Any, sample: Sample) -> None:
        """The next row that ships, with its sample."""
        self.n_rows += 1
        self.sources[sample.source] += 1
        self.licenses[sample.license or "not stated"] += 1
        self.categories[sample.category or "none"] += 1
        self.derived.update(derived_steps(sample))

    @property
    def intake(self) -> list[str]:
        """The choices of intake: frames of boxes, labels, derived fields."""
        return [*self.choices, *(f"{n} rows with {step}" for step, n in sorted(self.derived.items()))]


@dataclass
class SftFacts(SampleFacts):
    """Counts over trajectories."""

    n_images: int = 0
    videos: set[str] = field(default_factory=set)
    writers: Counter[str] = field(default_factory=Counter)
    rounds: Counter[int] = field(default_factory=Counter)
    first: tuple[Trajectory, Sample] | None = None
    """The row that is shown as the example."""
    _looks: list[float] = field(default_factory=list)
    _scores: dict[str, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0]))
    """Sum and number, by check."""

    def add(self, row: Trajectory, sample: Sample) -> None:
        super().add(row, sample)
        self.n_images += len(row.shown_images)
        self.videos.update(video.sha256 for video in sample.videos)
        self.writers[writer_in_words(row.provenance.policy, row.provenance.model)] += 1
        self.rounds[len(row.rounds)] += 1
        for check in row.checks:
            if check.score is not None:
                score = self._scores[check.name]
                score[0] += check.score
                score[1] += 1
        self._looks += look_scores(row.checks)
        self.first = self.first or (row, sample)

    @property
    def mean_scores(self) -> Mapping[str, float]:
        """Mean score of every check that counts votes or measures."""
        return {name: total / n for name, (total, n) in sorted(self._scores.items())}

    @property
    def first_looks(self) -> FirstLooks:
        return first_looks(self._looks)


@dataclass
class RlFacts(SampleFacts):
    """Counts over RL rows; ``from_drafts``: ids of the ``annotators``' samples that began as a policy's draft."""

    workspace: Workspace = field(kw_only=True)
    partitions: Sequence[str] = field(kw_only=True)
    annotators: Annotators = field(kw_only=True)
    from_drafts: Collection[str] = field(kw_only=True)
    n_with_accepted: int = 0
    public_or_annotated: Counter[str] = field(default_factory=Counter)
    difficulties: Counter[str] = field(default_factory=Counter)
    graders: Counter[str] = field(default_factory=Counter)
    necessity_models: set[str | None] = field(default_factory=set)
    priors: array[float] = field(default_factory=lambda: array("d"))
    _origins: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, row: RLRow, sample: Sample) -> None:
        super().add(row, sample)
        self.public_or_annotated[row.origin] += 1
        self.difficulties[row.difficulty] += 1
        self.graders[row.grader.kind] += 1
        self.n_with_accepted += len(right_answers(sample)) > 1
        if row.necessity is not None:
            self.necessity_models.add(row.necessity.forced.judge)
            self.priors.append(row.necessity.prior)
        for what, who in self._who(row).items():
            self._origins[what][who or _NOT_MEASURED] += 1

    @property
    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Rows by what they are."""
        return {
            "origin": self.public_or_annotated,
            "source": self.sources,
            "category": self.categories,
            "difficulty": self.difficulties,
            "grader": self.graders,
            "licence": self.licenses,
        }

    @property
    def origins(self) -> list[tuple[str, str, int]]:
        """For each fact of the rows: what, by whom, and for how many rows."""
        return [(what, who, n) for what, counts in self._origins.items() for who, n in sorted(counts.items())]

    @property
    def origins_in_words(self) -> dict[str, str]:
        """``origins`` as ``dataset_reader.origins_in`` reads them."""
        names = {what: ", ".join(sorted(who.keys() - {_NOT_MEASURED})) for what, who in self._origins.items()}
        judged_by = ", ".join(f"{who} ({what})" for what, who in names.items() if who and what != _AUTHOR)
        annotated_by = self.annotators if self.public_or_annotated["annotated"] else ""
        return {"written_by": names.get(_AUTHOR, ""), "judged_by": judged_by, "annotated_by": annotated_by}

    def _who(self, row: RLRow) -> Mapping[str, str | None]:
        is_theirs, sample_id = row.origin == "annotated", row.sample.sample_id
        author: str = row.sample.source
        if is_theirs:
            author = f"{self.annotators}, from a model's draft" if sample_id in self.from_drafts else self.annotators
        second_round = f"{self.annotators}, in a second round"
        return {
            _AUTHOR: author,
            "label compared with answers of": second_round if is_theirs else self._checked.get(key64(sample_id)),
            "pass rate, difficulty": measured_on([row.pass_rate.votes.judge]) if row.pass_rate else None,
            "tool necessity": measured_on([row.necessity.forced.judge]) if row.necessity else None,
            "visual suitability": asked(row.suitability.judge) if row.suitability else None,
        }

    @cached_property
    def _checked(self) -> KeyedSpill:
        """Who compared a sample's label, by its key; of several shards the last one's word counts."""
        checked = KeyedSpill(self.workspace.tables.scratch)
        for shard in shards_with(self.workspace, self.partitions, labels.ASSET):
            for label in self.workspace.tables.stream(shard.key(labels.ASSET), CheckedLabel):
                checked.add(key64(label.sample_id), "a person" if label.verified_by else asked(label.votes.judge))
        return checked


def intake_choices(tables: Tables, partitions: Iterable[str]) -> list[str]:
    """Frames of boxes and choices of labels, by source: ``streets: rows with boxes, read as thousandths (stated)``."""
    frames: dict[str, None] = {}
    label_choices: Counter[tuple[str, str]] = Counter()
    for key in tables.existing(TableKey(SAMPLES, partition) for partition in partitions):
        source, notes = source_of(key.partition), tables.facts(key).get("notes", {})
        if frame := notes.get("boxes"):
            frames[f"{source}: {in_words(frame)}"] = None
        for n, line, *_ in notes.get("lines", ()):
            if line in (MOST_FREQUENT, EQUALLY_FREQUENT):
                label_choices[source, line] += n
    return [*frames, *(f"{source}: {n} {line}" for (source, line), n in label_choices.items())]


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """A released family: every row is counted at every check, whichever it failed first."""

    n_rows: int
    n_read: int
    unread: Mapping[str, int]
    """Rows that could not be read, by reason."""
    n_checked: int
    failed: Mapping[str, int]
    """Rows by check that says no; a check that all pass has 0."""


def release_facts(tables: Tables, family: str, partitions: Sequence[str]) -> ReleaseFacts:
    """The facts of a released family. Raises ``TableMissing``."""
    unread: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    n_read = n_checked = 0
    for partition in partitions:
        samples = TableKey(SAMPLES, partition)
        n_read += tables.n_rows(samples)
        unread.update(reject.reason for reject in tables.read_rejects(samples))
        for (checks,) in tables.columns(TableKey((family, "verdicts"), partition), "checks"):
            n_checked += 1
            failed.update({check["name"]: int(not check["passed"]) for check in checks})
    return ReleaseFacts(n_read + unread.total(), n_read, dict(sorted(unread.items())), n_checked, dict(failed))
