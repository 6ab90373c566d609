"""Questions of an exported dataset, a benchmark or a source, each with its scoring rule. Forms of one question with the
same images, text and choices are one ``group`` (HR-Bench rotates choices): only groups are independent."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from darkroom.pipelines.publishing import dataset_reader
from darkroom.pipelines.records import Grader, Sample, from_row
from darkroom.pipelines.records.answers import split_choice
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.records.rl import shipped_grader
from darkroom.pipelines.records.samples import details_of
from darkroom.pipelines.selection.sampling import SPLITS
from darkroom.pipelines.sources import Source, SourceError
from darkroom.pipelines.sources.catalog import Catalog, open_source
from darkroom.pipelines.sources.columns import list_in
from darkroom.pipelines.sources.ingest import ingest_shard
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.grading import grader_of
from darkroom.sandbox.errors import raised_as
from darkroom.train.evaluation.benchmarks import BenchmarkConfig, OfficialRule, Scoring, opened
from darkroom.train.evaluation.settings import EvaluationSettings
from darkroom.train.examples.encoding import sample_of
from darkroom.train.runs import TrainError
from darkroom.train.runs.options import require_dataset


@dataclass(frozen=True, slots=True)
class Question:
    """A sample with its scoring rule: ``official`` before all; ``grader`` None: the first that can parse the answer.
    ``variants`` names the question that this is a version of; SFT rows set ``protocol`` and ``mode``."""

    benchmark: str
    sample: Sample
    grader: Grader | None = None
    scoring: Scoring = "grader"
    accepted: tuple[str, ...] = ()
    cycle: str = ""
    variants: str = ""
    figures: str = ""
    official: tuple[OfficialRule, ...] = ()
    protocol: str = ""
    mode: str = ""

    @property
    def group(self) -> str:
        """Digest of the question itself, whatever the order of its choices or the version."""
        sample = self.sample
        if self.variants:
            return digest([self.benchmark, self.variants])
        media = [image.sha256 for image in sample.images] + [video.sha256 for video in sample.videos]
        texts = sorted(split_choice(choice)[1] for choice in sample.choices)
        alone = [] if texts else [sample.sample_id]
        return digest([self.benchmark, media, sample.question, texts, *alone])


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of one dataset, benchmark or source; ``left_out`` counts rejected rows by reason."""

    name: str
    questions: tuple[Question, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)


def questions_of(settings: EvaluationSettings, workspace: Workspace) -> list[QuestionSet]:
    """Read the questions that ``settings`` name: of datasets, benchmarks and sources. Raises ``UserError``."""
    store, limit = workspace.images, settings.limit
    question_sets = [of_dataset(folder, store, split=settings.split, limit=limit) for folder in settings.datasets]
    ours = {"official": ()} if settings.strict else {}
    configs = [(name, opened(name, path).model_copy(update=ours)) for name, path in settings.benchmarks]
    question_sets += [of_benchmark(name, config, store, limit=limit) for name, config in configs]
    catalog = Catalog(workspace.sources)
    question_sets += [of_source(catalog.open(name), store, limit=limit) for name in settings.sources]
    return _distinct(question_sets)


def _distinct(question_sets: Sequence[QuestionSet]) -> list[QuestionSet]:
    """Number question sets of the same name, which would merge into one benchmark in every table."""
    n_same: Counter[str] = Counter()
    distinct: list[QuestionSet] = []
    for question_set in question_sets:
        name = question_set.name
        n_same[name] += 1
        name += f" ({n_same[name]})" if n_same[name] > 1 else ""
        questions = tuple(replace(question, benchmark=name) for question in question_set.questions)
        distinct.append(replace(question_set, name=name, questions=questions))
    return distinct


def of_benchmark(name: str, config: BenchmarkConfig, store: ImageStore, *, limit: int | None = None) -> QuestionSet:
    """Ingest the first ``limit`` rows of a benchmark. Raises ``TrainError``."""
    with raised_as(lambda error: TrainError(f"benchmark {name!r}: {error}"), SourceError):
        ingested = ingest_shard(open_source(name, config), 0, store, n_rows=limit)
    questions = tuple(_of_benchmark(sample, config) for sample in ingested.samples)
    return QuestionSet(name, questions, Counter(str(reject.reason) for reject in ingested.rejects))


def of_source(source: Source, store: ImageStore, *, limit: int | None = None) -> QuestionSet:
    """Ingest the first ``limit`` rows of a source of the catalog. Raises ``TrainError``."""
    questions: list[Question] = []
    left_out: Counter[str] = Counter()
    for shard in range(source.n_shards):
        n_left = None if limit is None else limit - len(questions) - left_out.total()
        with raised_as(lambda error: TrainError(f"source {source.name!r}: {error}"), SourceError):
            ingested = ingest_shard(source, shard, store, n_rows=n_left)
        questions += [Question(source.name, sample, _grader(sample)) for sample in ingested.samples]
        left_out.update(str(reject.reason) for reject in ingested.rejects)
    return QuestionSet(source.name, tuple(questions), left_out)


def of_dataset(folder: Path, store: ImageStore, *, split: str = "validation", limit: int | None = None) -> QuestionSet:
    """Read the first ``limit`` questions of an RL or an SFT dataset's split (``all``: of every split), each once.
    Raises ``TrainError`` for a folder that is neither and for a split without rows."""
    from darkroom.pipelines.publishing.features import check_columns  # `datasets` takes a second

    files = _files(folder, split)
    kind = dataset_reader.kind_of(files[0])
    try:
        check_columns(files[0], kind)
    except dataset_reader.DatasetError as error:
        columns = ", ".join(sorted(dataset_reader.columns_of(files[0])))
        found = f"{folder} is neither an RL nor an SFT dataset: it has the columns {columns}"
        raise TrainError(f"{found}. For other files write a mapping: --benchmark NAME=FILE.yaml") from error
    read = _of_prompt if kind == "prompts" else _of_trajectory
    questions: dict[str, Question] = {}
    for row in dataset_reader.read_files(files):
        if row["sample_id"] not in questions and (limit is None or len(questions) < limit):
            questions[row["sample_id"]] = read(folder.name, row, store)
    return QuestionSet(folder.name, tuple(questions.values()))


def _of_benchmark(sample: Sample, config: BenchmarkConfig) -> Question:
    details = details_of(sample)
    names = (config.accepted, config.cycle, config.variants)
    accepted, cycle, variants = (details.get(name) if name else None for name in names)
    scoring = "grader" if sample.choices else config.scoring_by_category.get(sample.category, config.scoring)
    own_rules = {"anls": None, "judged": Grader("judged")}
    grader = own_rules[scoring] if scoring in own_rules else _grader(sample)
    listed = list_in(accepted)  # a text may spell a list
    if listed is None:
        listed = [] if accepted is None else [accepted]
    right = tuple(map(str, listed)) or (sample.answer,)
    cycle, variants = ("" if value is None else str(value) for value in (cycle, variants))
    return Question(
        sample.source, sample, grader, scoring, right, cycle, variants, config.figures or "", config.official
    )


def _grader(sample: Sample) -> Grader | None:
    with suppress(RowError):
        return grader_of(sample)
    return None  # no rule of its own: the first that can parse the answer


def _files(folder: Path, split: str) -> list[Path]:
    require_dataset(folder)
    splits = [file for file in dataset_reader.dataset_files(folder) if dataset_reader.split_of(file) in SPLITS]
    files = [file for file in splits if split in ("all", dataset_reader.split_of(file))]
    if not dataset_reader.n_rows_of(files):
        existing = ", ".join(dict.fromkeys(map(dataset_reader.split_of, splits))) or "none"
        raise TrainError(f"{folder} has no rows in the split {split!r} (it has: {existing}); name another with --split")
    return files


def _of_prompt(name: str, row: Mapping[str, Any], store: ImageStore) -> Question:
    return Question(name, _sample(row, row["images"], store), from_row(Grader, shipped_grader(row)))


def _of_trajectory(name: str, row: Mapping[str, Any], store: ImageStore) -> Question:
    """The answer of a shipped trajectory passed the check against the gold answer, so it serves as gold."""
    sample = replace(_sample(row, row["images"][: row["n_question_images"]], store), category=row["family"])
    return Question(name, sample, _grader(sample), protocol=row["protocol"], mode=row["mode"])


def _sample(row: Mapping[str, Any], images: Sequence[Any], store: ImageStore) -> Sample:
    videos = tuple(store.add_video(video["bytes"]) for video in row["videos"] or ())
    return sample_of(row, tuple(store.ingest(image["bytes"]) for image in images), videos)
