"""The benchmarks that a user points at, and findings: a training row that shows or says what a benchmark's row does.

A YAML or JSON file names each and maps its columns as a source's:

    vstar:
      kind: huggingface
      path: /benchmarks/vstar_bench
      split: test
      columns: {images: image, question: text, row_id: question_id}
    photographs:
      kind: folder
      path: /benchmarks/private_photographs

Answers are not looked for, so no column of answers is needed. Images as bare base64 must be made data URLs first.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

import pyarrow as pa
import yaml
from pydantic import BaseModel, Field, TypeAdapter

from darkroom.pipelines.models.tasks import question_text, spelled_answer
from darkroom.pipelines.records import ImageRef, Sample, Trajectory, schemas
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources import BadRow, SourceError, SourceRow
from darkroom.pipelines.sources.catalog import open_source
from darkroom.pipelines.sources.source_config import SourceConfig
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.user_files import config_errors
from darkroom.sandbox.errors import UserError, raised_as

ContaminationKind = Literal["question", "phrase", "image", "near_image", "image_part"]
"""The same short question; shared runs of words; the same bytes; the same image, changed; a part of one in another."""


class DecontaminationError(UserError):
    """A benchmark, or the list of them, cannot be read: says which and why."""


@dataclass(frozen=True, slots=True)
class Contamination:
    """One finding. ``score``: the share of the question's own n-grams that were found; 1 for the same words or bytes;
    the share of a near image's details that agree; the correlation of the details of an image part (all 0..1)."""

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
    """The parts of a training row that can contaminate: its texts and every image that it shows."""

    trajectory_id: str
    sample_id: str
    texts: tuple[str, ...]
    """The question with its choices, then thoughts."""
    images: tuple[ShownImage, ...]
    answer: str = ""

    @property
    def row_id(self) -> str:
        return self.trajectory_id or self.sample_id

    @property
    def first_image(self) -> ImageRef | None:
        """The question's first; None without any."""
        return next((item.image for item in self.images if item.where == _FIRST), None)

    @classmethod
    def of_sample(cls, sample: Sample) -> Self:
        return cls("", sample.sample_id, (question_text(sample),), _numbered(sample.images), spelled_answer(sample))

    @classmethod
    def of_trajectory(cls, trajectory: Trajectory, sample: Sample) -> Self:
        """The sample's question, what the policy thought, and every image, those of observations included."""
        thoughts = (*(turn.thought for turn in trajectory.rounds), trajectory.final_thought)
        images = _numbered(trajectory.images)
        for number, turn in enumerate(trajectory.rounds, 1):
            images += _numbered(turn.observation.images, f"round {number}, ")
        texts = (question_text(sample), *thoughts)
        return cls(trajectory.trajectory_id, sample.sample_id, texts, images, spelled_answer(sample))


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
    rows = {finding.benchmark_row for finding in own}
    training_rows = {(finding.trajectory_id, finding.sample_id) for finding in own}
    return BenchmarkCounts(benchmark, n_rows, n_unread, len(rows), len(training_rows), dict(sorted(kinds.items())))


_SUFFIXES = frozenset({".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".jp2", ".png", ".ppm", ".tif", ".tiff", ".webp"})


class FolderConfig(BaseModel, extra="forbid", frozen=True):
    """Images alone, in a folder and the folders below it."""

    kind: Literal["folder"]
    path: str


BenchmarkConfig = Annotated[FolderConfig | SourceConfig, Field(discriminator="kind")]
_CONFIGS: TypeAdapter[dict[str, FolderConfig | SourceConfig]] = TypeAdapter(dict[str, BenchmarkConfig])


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark by name; its rows are read when they are asked for."""

    name: str
    config: FolderConfig | SourceConfig

    def fingerprint(self) -> str:
        """Changes with the files and with the mapping. Raises ``DecontaminationError``."""
        if isinstance(self.config, FolderConfig):
            files = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in self._files()]
            return digest([self.name, files])
        with raised_as(self._error, SourceError):
            return open_source(self.name, _answerless(self.config)).fingerprint

    def rows(self) -> Iterator[SourceRow | BadRow]:
        """The rows, in order. Raises ``DecontaminationError`` that names the benchmark and the file."""
        if isinstance(self.config, FolderConfig):
            folder = Path(self.config.path)
            yield from (_image(path, str(path.relative_to(folder))) for path in self._files())
            return
        with raised_as(self._error, SourceError):
            source = open_source(self.name, _answerless(self.config))
            for shard in range(source.n_shards):
                yield from source.rows(shard)

    def _files(self) -> list[Path]:
        if not (folder := Path(self.config.path)).is_dir():
            raise DecontaminationError(f"benchmark {self.name!r}: there is no folder {folder}")
        return [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in _SUFFIXES and path.is_file()]

    def _error(self, error: SourceError) -> DecontaminationError:
        return DecontaminationError(f"benchmark {self.name!r}: {error}")


def read_benchmarks(path: StorePath) -> list[Benchmark]:
    """The benchmarks of a file, by name. Raises ``DecontaminationError`` that names the file and the field."""
    with config_errors(path, DecontaminationError):
        text = path.read_text(encoding="utf-8")
        configs = _CONFIGS.validate_python(json.loads(text) if path.suffix == ".json" else yaml.safe_load(text))
    return [Benchmark(name, config) for name, config in configs.items()]


def _answerless(config: SourceConfig) -> SourceConfig:
    """With a column that is there in the place of the answers, unless the file maps one."""
    columns = config.columns
    if "answer" in columns.model_fields_set:
        return config
    return config.model_copy(update={"columns": columns.model_copy(update={"answer": columns.question})})


def _image(path: Path, row: str) -> SourceRow | BadRow:
    try:
        return SourceRow(row=row, images=(path.read_bytes(),), question="", answer="")
    except OSError as error:
        return BadRow(row, Reason.UNREADABLE_IMAGE, f"{path}: {error.strerror}", {})
