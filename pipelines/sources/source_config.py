"""A source as its YAML file describes it: data alone, opened by the catalog (``catalog.py``)."""

from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

from darkroom.pipelines.sources.columns import Columns

Kind = Literal[
    "jsonl", "parquet", "csv", "tsv", "huggingface", "trajectories", "coco", "yolo", "voc", "labelme", "webdataset"
]
Template = Literal["what", "how_many"]
Use = Literal["sft", "released", "rl"]
"""Takers of a source's shards: the families that are drafted, those of released trajectories, the RL stages."""


class DatasetInfo(BaseModel, extra="forbid", frozen=True):
    """A description of a public dataset, for people: no row depends on it."""

    hub: str
    """Its name on the hub."""
    rows: str
    """Their number, from its card."""
    asks: str
    """The kind of its questions."""
    columns_from: str
    """Origin of its columns: the card, or code that reads it."""
    on_card: bool = False
    """True if that was its card; if not, it was public code or its first shard."""
    get: str = ""
    """Files to unpack beside its questions, where images are separate files; then it needs a local path."""
    remarks: str = ""


class Join(BaseModel, extra="forbid", frozen=True):
    """A second JSON file whose fields belong to the rows: VQA's annotations beside its questions."""

    file: str
    rows: str | None = None
    """The list of its rows, like ``SourceConfig.rows``."""
    on: str
    """The field with the same value in both."""


class SourceConfig(BaseModel, extra="forbid", frozen=True):
    """A source's YAML file."""

    about: DatasetInfo | None = None
    kind: Kind
    """``csv``, ``tsv``: a table with a header. ``coco`` to ``webdataset``: ``published_files.py``. ``trajectories``:
    released ones, in JSON lines where ``questions`` is set, else as ``huggingface`` or parquet."""
    path: str
    questions: str | tuple[str, ...] | None = None
    """The file or files, absolute or below ``path``; default: ``metadata.jsonl`` of ``jsonl``, else all of the kind."""
    rows: str | None = None
    """The list of rows inside a JSON file: ``data``; ``*``: the values of an object; ``*.qas``: a list in each."""
    join: Join | None = None
    ask: tuple[Template, ...] = ("what",)
    """Questions about boxes that have none, of the kinds ``coco``, ``yolo``, ``voc`` and ``labelme``."""
    files: tuple[str, ...] = ()
    """``parquet``, ``huggingface``: which of the dataset's files; default: all."""
    folder: str | None = None
    """The beginning of relative paths in rows, a folder or a ZIP archive; default: ``path``."""
    columns: Columns = Columns()
    config: str | None = None
    split: str | None = None
    """Default: the only one of local files, ``train`` of a hub's dataset."""
    revision: str | None = None
    n_shards: int = Field(default=1, ge=1)
    license: str = ""
    language: str = Field(default="", pattern="^([a-z]{2,3})?$")
    """The language of its questions, ISO 639; for the dataset's card."""
    visual_search: bool | None = None
    """True if its questions ask for something small at one place; for rows without boxes (``pipelines/rl``)."""
    used_for: tuple[Literal["sft", "rl"], ...] | None = None
    """Uses of its rows; default: ``rl`` for a public dataset, else ``sft``. Released trajectories have none."""

    @model_validator(mode="after")
    def _has_a_transcript(self) -> Self:
        if self.is_release != (self.columns.transcript is not None):
            raise ValueError("the kind `trajectories` needs `columns.transcript`, and no other kind has it")
        if self.is_release and self.used_for is not None:
            raise ValueError("the kind `trajectories` has no `used_for`: its rows go to the families of releases")
        return self

    @property
    def is_release(self) -> bool:
        """True if rows are released trajectories: their samples go to the families of ``generation/released.py``."""
        return self.kind == "trajectories"

    @property
    def uses(self) -> tuple[Use, ...]:
        """Uses of its shards that need no request."""
        if self.is_release:
            return ("released",)
        return (("rl",) if self.about else ("sft",)) if self.used_for is None else self.used_for
