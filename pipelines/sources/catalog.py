"""The catalog: the embedded sources and every source that a user added, one YAML file each below ``<home>/sources``.

kind: jsonl
questions: /data/streets/questions.jsonl
path: /data/streets
columns: {images: image, question: question, answer: answer, boxes: boxes}
n_shards: 4
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.sources.base import Source
from pipelines.sources.columns import Columns
from pipelines.sources.demo import DemoSource
from pipelines.sources.demo_rl import DemoRLSource
from pipelines.sources.faults import SourceFault
from pipelines.sources.jsonl import JsonLinesSource
from pipelines.whole import write_whole

EMBEDDED, EMBEDDED_RL = "demo", "demo_rl"
"""The names of the sources that are always there: for trajectories, and for RL prompts."""

_EMBEDDED: Mapping[str, Callable[[], Source]] = {EMBEDDED: DemoSource, EMBEDDED_RL: DemoRLSource}

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class About(BaseModel):
    """What is known of a public dataset, for people: no row depends on it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hub: str
    """Its name on the hub."""
    rows: str
    """How many, as its card says."""
    asks: str
    """What kind of questions it has."""
    columns_from: str
    """Where its columns were read."""
    on_card: bool = False
    """Whether that was its card; if not, its first shard tells."""
    get: str = ""
    """What is to be unpacked beside its questions, where images are files of their own; then it needs a local path."""
    remarks: str = ""


class SourceConfig(BaseModel):
    """One source as its file has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    about: About | None = None
    kind: Literal["jsonl", "parquet", "huggingface"]
    path: str
    questions: str | tuple[str, ...] | None = None
    """``jsonl``: the file or files, absolute or below ``path``; default: ``metadata.jsonl``."""
    files: tuple[str, ...] = ()
    """``parquet``, ``huggingface``: which of the dataset's files; default: all."""
    folder: str | None = None
    """Where relative paths in rows begin, a folder or a ZIP archive; default: ``path``."""
    columns: Columns = Columns()
    config: str | None = None
    split: str = "train"
    revision: str | None = None
    n_shards: int = Field(default=1, ge=1)
    license: str = ""

    def open(self, name: str) -> Source:
        """The source. Raises ``SourceFault`` when its files are not there."""
        if self.kind == "jsonl":
            named = (self.questions,) if isinstance(self.questions, str) else self.questions or ("metadata.jsonl",)
            questions = [Path(self.path) / file for file in named]  # an absolute path stays what it is
            folder = Path(self.folder or self.path)
            return JsonLinesSource(name, questions, folder, self.columns, n_shards=self.n_shards, license=self.license)
        # `datasets` takes a second to import, which no command waits for that reads no such source
        from pipelines.sources.tabular import TabularSource

        return TabularSource(
            name,
            self.path,
            self.columns,
            parquet=self.kind == "parquet",
            folder=Path(self.folder) if self.folder else None,
            files=self.files,
            config=self.config,
            split=self.split,
            revision=self.revision,
            n_shards=self.n_shards,
            license=self.license,
        )


def partition_key(source: str, shard: int) -> str:
    """``streets-0003``: the partition of a shard."""
    return f"{source}-{shard:04d}"


def source_of(partition: str) -> str:
    """The source of ``streets-0003``."""
    return partition.rpartition("-")[0]


def check_name(name: str) -> None:
    """Raises ``SourceFault`` unless ``name`` can be a source's: it becomes part of file names and partition keys."""
    if not _NAME.fullmatch(name) or name in _EMBEDDED:
        raise SourceFault(
            f"a source is named in lower case letters, digits and '_', like 'streets', and not "
            f"{' or '.join(map(repr, _EMBEDDED))}; found {name!r}"
        )


class Catalog:
    """Sources by name, with the partitions that their shards are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, config: SourceConfig) -> Path:
        """Writes a source's file, whole. Raises ``SourceFault`` for a name that cannot be one."""
        check_name(name)
        path = self.folder / f"{name}.yaml"
        config_as_yaml = yaml.safe_dump(
            config.model_dump(mode="json", exclude_defaults=True), sort_keys=False, allow_unicode=True, width=110
        )
        write_whole(path, config_as_yaml)
        return path

    def configs(self) -> dict[str, SourceConfig]:
        """The added sources. Raises ``SourceFault`` that names the file and the field."""
        paths = sorted(self.folder.glob("*.yaml"))
        for path in paths:
            check_name(path.stem)
        return {path.stem: read_config(path) for path in paths}

    def open(self, name: str) -> Source:
        """One source."""
        if name in _EMBEDDED:
            return _EMBEDDED[name]()
        configs = self.configs()
        if name not in configs:
            raise SourceFault(f"there is no source {name!r}; there are {', '.join([*_EMBEDDED, *configs])}")
        return configs[name].open(name)

    def partitions(self) -> dict[str, tuple[str, int]]:
        """Every partition with its source and shard: the embedded sources' first, then the added ones' by name."""
        return dict(self._partitions())

    def _partitions(self) -> Iterator[tuple[str, tuple[str, int]]]:
        shards: Mapping[str, int] = {
            **{name: embedded().n_shards for name, embedded in _EMBEDDED.items()},
            **{name: config.n_shards for name, config in self.configs().items()},
        }
        for name, n_shards in shards.items():
            yield from ((partition_key(name, shard), (name, shard)) for shard in range(n_shards))


def read_config(path: Path) -> SourceConfig:
    """One file. Raises ``SourceFault`` that names the file and the field."""
    try:
        return SourceConfig.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except ValidationError as fault:
        first = fault.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise SourceFault(f"{path}: {field}: {first['msg']}") from fault
    except (yaml.YAMLError, UnicodeDecodeError) as fault:
        raise SourceFault(f"{path} is not YAML: {fault}") from fault
