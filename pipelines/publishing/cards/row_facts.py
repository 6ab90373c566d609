"""Facts for cards, gathered row by row: counts, sums of scores, and a release's checks."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import CheckedLabel, RLRow, Sample
from darkroom.pipelines.records.annotation import Annotators, asked, measured_on, writer_in_words
from darkroom.pipelines.records.digest import key64
from darkroom.pipelines.records.samples import is_licensed
from darkroom.pipelines.rl import labels
from darkroom.pipelines.rl.facts import shards_with
from darkroom.pipelines.selection.sampling import SPLITS
from darkroom.pipelines.sources.answers import EQUALLY_FREQUENT, MOST_FREQUENT
from darkroom.pipelines.sources.catalog import source_of
from darkroom.pipelines.sources.ingest import in_words
from darkroom.pipelines.storage.media_validation import derived_steps
from darkroom.pipelines.storage.row_files import KeyedSpill
from darkroom.pipelines.storage.tables import TableKey, Tables
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.checks.crop import FirstLooks, first_looks, place_could_be_known

_NOT_MEASURED = "not measured"
_AUTHOR = "question and answer"
_NO_ROWS = dict.fromkeys(SPLITS, 0)


@dataclass
class RowFacts:
    """Counts over shipped rows of either kind, by the columns in their files; sums are the same in any order."""

    choices: Sequence[str] = ()
    """From ``intake_choices``."""
    derived: Counter[str] = field(default_factory=Counter)
    """Rows by what intake changed about their images and videos."""
    n_rows: int = 0
    n_images: int = 0
    n_with_accepted: int = 0
    columns: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter, split=Counter(_NO_ROWS)))
    """Rows by the values of what the card counts."""
    videos: set[str] = field(default_factory=set)
    examples: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The first trajectory of each split."""
    priors: array[float] = field(default_factory=lambda: array("d"))
    _looks: list[float] = field(default_factory=list)
    _scores: dict[str, tuple[Fraction, int]] = field(default_factory=lambda: defaultdict(lambda: (Fraction(), 0)))
    """Sum and number, by check."""

    def count(self, row: Mapping[str, Any], split: str) -> None:
        """The next row that ships in a file of ``split``."""
        self.n_rows += 1
        self.n_images += len(row["images"])
        self.n_with_accepted += bool(row.get("accepted"))
        self.videos.update(video["sha256"] for video in row.get("video_refs") or ())
        if "grader" not in row and split not in self.examples:
            self.examples[split] = _without_images(row)
        if (prior := row.get("necessity_prior")) is not None:
            self.priors.append(prior)
        for name, value in _values(row).items():
            self.columns[name][value] += 1
        self.columns["split"][split] += 1
        for check in row.get("checks") or ():
            if (score := check["score"]) is not None:
                total, n = self._scores[check["name"]]
                self._scores[check["name"]] = total + Fraction(score), n + 1
                self._looks += [score] if check["name"] == place_could_be_known.name else []

    def add(self, row: Any, sample: Sample) -> None:
        """Count what its columns do not say."""
        self.derived.update(derived_steps(sample))

    def counted(self) -> dict[str, Any]:
        """The counts of ``count``, for the card."""
        names = ("n_rows", "n_images", "n_with_accepted", "columns", "first_looks")
        n_priors, n_above = len(self.priors), sum(prior > 0 for prior in self.priors)
        return {name: getattr(self, name) for name in names} | {
            "n_videos": len(self.videos),
            "n_unlicensed": sum(n for licence, n in self.columns["licence"].items() if not is_licensed(licence)),
            "mean_scores": {name: float(total / n) for name, (total, n) in sorted(self._scores.items())},
            "priors": {"n": n_priors, "n_above": n_above, "mean": math.fsum(self.priors) / max(n_priors, 1)},
            "example": self.examples[min(self.examples)] if self.examples else None,
        }

    @property
    def first_looks(self) -> FirstLooks:
        return first_looks(sorted(self._looks))

    @property
    def intake(self) -> list[str]:
        """The choices of intake: frames of boxes, labels, derived fields."""
        return [*self.choices, *(f"{n} rows with {step}" for step, n in sorted(self.derived.items()))]


def _values(row: Mapping[str, Any]) -> dict[str, str]:
    values = {"source": row["source"], "licence": row["license"] or "not stated", "category": row["category"] or "none"}
    if "grader" not in row:
        writer = writer_in_words(row["provenance"]["policy"], row["provenance"]["model"])
        return values | {"writer": writer, "rounds": str(len(row["rounds"]))}
    measured = {"necessity_model": row["necessity_model"]} if row.get("necessity_prior") is not None else {}
    return (
        values | {"grader": row["grader"]["kind"]} | {name: row[name] for name in ("origin", "difficulty")} | measured
    )


def _without_images(row: Mapping[str, Any]) -> dict[str, Any]:
    rounds = [{"thought": turn["thought"], "code": turn["code"]} for turn in row["rounds"][:1]]
    return {
        "question": row["question"],
        "rounds": rounds,
        "final_thought": row["final_thought"],
        "answer": row["answer"],
    }


@dataclass
class RlFacts(RowFacts):
    """With who made and measured the rows; ``from_drafts``: ids of the ``annotators``' samples that began as a policy's
    draft."""

    workspace: Workspace = field(kw_only=True)
    partitions: Sequence[str] = field(kw_only=True)
    annotators: Annotators = field(kw_only=True)
    from_drafts: Collection[str] = field(kw_only=True)
    _origins: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, row: RLRow, sample: Sample) -> None:
        super().add(row, sample)
        for what, who in self._who(row).items():
            self._origins[what][who or _NOT_MEASURED] += 1

    @property
    def origins(self) -> list[tuple[str, str, int]]:
        """For each fact of the rows: what, by whom, and for how many rows."""
        return [(what, who, n) for what, counts in self._origins.items() for who, n in sorted(counts.items())]

    @property
    def origins_in_words(self) -> dict[str, str]:
        """``origins`` as ``dataset_reader.origins_in`` reads them."""
        names = {what: ", ".join(sorted(who.keys() - {_NOT_MEASURED})) for what, who in self._origins.items()}
        judged_by = "; ".join(f"{what}: {who}" for what, who in names.items() if who and what != _AUTHOR)
        annotated_by = self.annotators if self.columns["origin"]["annotated"] else ""
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


def release_facts(tables: Tables, family: str, partitions: Sequence[str]) -> dict[str, Any]:
    """Rows of a released family: ``unread`` by reason, and ``failed`` by check, whichever a row failed first (0 for one
    that all pass). Raises ``TableMissing``."""
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
    rows = {"n_rows": n_read + unread.total(), "n_read": n_read, "n_checked": n_checked}
    return rows | {"unread": dict(sorted(unread.items())), "failed": failed}
