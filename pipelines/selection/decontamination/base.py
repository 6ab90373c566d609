"""What contaminates: one training row that shows or says what a benchmark's row shows or says, with the evidence."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import pyarrow as pa

from darkroom.pipelines.models.tasks import question_text
from darkroom.pipelines.records import ImageRef, Sample, Trajectory, schemas
from darkroom.sandbox.errors import UserError

ContaminationKind = Literal["question", "phrase", "image", "near_image", "image_part"]
"""The same short question; shared runs of words; the same bytes; the same image, changed; a part of one in another."""


class DecontaminationError(UserError):
    """A benchmark, or the list of them, cannot be read: says which and why."""


@dataclass(frozen=True, slots=True)
class Contamination:
    """One finding. ``score``: the share of the question's own n-grams that were found; 1 for the same words or bytes;
    the share of a near image's details that agree; the correlation of the details of an image part (all 0..1).
    """

    trajectory_id: str
    """Empty where a sample was looked at."""
    sample_id: str
    benchmark: str
    benchmark_row: str
    kind: ContaminationKind
    score: float
    detail: str


_FIRST = "image 0"


@dataclass(frozen=True, slots=True)
class ShownImage:
    """An image of a training row and where it is shown: ``image 0``, ``round 1, image 0``."""

    image: ImageRef
    where: str


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """What of a training row can contaminate: its texts and every image that it shows."""

    trajectory_id: str
    sample_id: str
    texts: tuple[str, ...]
    """The question with its choices, then thoughts."""
    images: tuple[ShownImage, ...]

    @property
    def row_id(self) -> str:
        """The trajectory's id, or the sample's."""
        return self.trajectory_id or self.sample_id

    @property
    def first_image(self) -> ImageRef | None:
        """The question's first; None without any."""
        return next((shown.image for shown in self.images if shown.where == _FIRST), None)

    @classmethod
    def of_sample(cls, sample: Sample) -> Self:
        """The sample's question, with its choices, and its images."""
        return cls("", sample.sample_id, (question_text(sample),), _numbered(sample.images))

    @classmethod
    def of_trajectory(cls, trajectory: Trajectory, sample: Sample) -> Self:
        """The sample's question, what the policy thought, and every image, those of observations included."""
        thoughts = (*(turn.thought for turn in trajectory.rounds), trajectory.final_thought)
        observed = [
            image
            for number, turn in enumerate(trajectory.rounds, 1)
            for image in _numbered(turn.observation.images, f"round {number}, ")
        ]
        images = (*_numbered(trajectory.images), *observed)
        return cls(trajectory.trajectory_id, sample.sample_id, (question_text(sample), *thoughts), images)


def _numbered(images: Sequence[ImageRef], before: str = "") -> tuple[ShownImage, ...]:
    return tuple(ShownImage(image, f"{before}image {number}") for number, image in enumerate(images))


@dataclass(frozen=True, slots=True)
class BenchmarkCounts:
    """One benchmark in the dataset card. ``n_unread`` rows could not be read and so were not looked for."""

    benchmark: str
    n_rows: int
    n_unread: int
    n_contaminated_rows: int
    """Rows of the benchmark that any training row touches."""
    n_training_rows: int
    n_by_kind: dict[ContaminationKind, int]
    """Findings of each kind."""


CONTAMINATION = schemas.schema_of(Contamination)


def to_table(findings: Iterable[Contamination]) -> pa.Table:
    """The findings as a table: the evidence that is kept beside a dataset."""
    return schemas.to_table(Contamination, findings)


def count(findings: Sequence[Contamination], *, benchmark: str, n_rows: int, n_unread: int) -> BenchmarkCounts:
    own = [finding for finding in findings if finding.benchmark == benchmark]
    kinds: Counter[ContaminationKind] = Counter(finding.kind for finding in own)
    return BenchmarkCounts(
        benchmark=benchmark,
        n_rows=n_rows,
        n_unread=n_unread,
        n_contaminated_rows=len({finding.benchmark_row for finding in own}),
        n_training_rows=len({(finding.trajectory_id, finding.sample_id) for finding in own}),
        n_by_kind=dict(sorted(kinds.items())),
    )
