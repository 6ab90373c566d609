"""The catalog of sources: bundled ones, and those that users added, one YAML file each below ``<home>/sources``.

kind: jsonl
questions: /data/streets/questions.jsonl
path: /data/streets
columns: {images: image, question: question, answer: answer, boxes: boxes}
n_shards: 4

The public datasets of RL prompts are such files too, below ``pipelines/sources/public``, with a description:

public_sources()["mmk12"].about.hub      # "FanqingM/MMK12"
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import ValidationError

from darkroom.pipelines.sources import Source, SourceError
from darkroom.pipelines.sources.columns import Columns, alternatives, did_you_mean
from darkroom.pipelines.sources.jsonl import JsonLinesSource, Row, parsed_lines
from darkroom.pipelines.sources.published_files import PUBLISHED, published_files, rows_of
from darkroom.pipelines.sources.source_config import SourceConfig, Use
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.storage_errors import storage_errors
from darkroom.pipelines.storage.store_paths import StorePath, children, remove_file
from darkroom.pipelines.storage.user_files import loaded
from darkroom.sandbox.errors import ExtraMissing

EMBEDDED, EMBEDDED_RL = "demo", "demo_rl"
"""The names of the bundled sources: for trajectories, and for RL prompts."""

SOURCES = "darkroom.sources"
"""The group of entry points: a source's name, and what opens it without arguments. A package adds sources with it."""

_PUBLIC = Path(__file__).parent / "public"
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def open_source(name: str, config: SourceConfig) -> Source:
    """Open a source by its config. Raises ``SourceError`` when its files are missing."""
    if config.kind == "jsonl" or (config.is_release and config.questions is not None):
        files = alternatives(config.questions) or ("metadata.jsonl",)
        questions = [Path(config.path) / file for file in files]  # an absolute path stays absolute
        return _file_source(name, config, questions, partial(parsed_lines, rows=config.rows, join=config.join))
    if config.kind in PUBLISHED:
        return _file_source(name, config, published_files(name, config), partial(rows_of, config=config))
    # `datasets` takes a second to import, which only these sources need
    from darkroom.pipelines.sources.tabular import TabularSource

    return TabularSource(name, config)


def _file_source(
    name: str, config: SourceConfig, files: list[Path], read: Callable[[Path], Iterator[Row]]
) -> JsonLinesSource:
    fields = {field: getattr(config, field) for field in ("rows", "join", "ask", "split")}
    reading = [str(value) for field, value in fields.items() if value != SourceConfig.model_fields[field].default]
    folder, by_file = Path(config.folder or config.path), len(files) > 1 and config.kind in PUBLISHED
    own: dict[str, Any] = {"n_shards": config.n_shards, "license": config.license}
    return JsonLinesSource(name, files, folder, config.columns, **own, read=read, by_file=by_file, reading=reading)


def partition_key(source: str, shard: int) -> str:
    """``streets-0003``: the partition of a shard."""
    return f"{source}-{shard:04d}"


def source_of(partition: str) -> str:
    return partition.rpartition("-")[0]


@cache
def _embedded() -> Mapping[str, EntryPoint]:
    return {entry.name: entry for entry in sorted(entry_points(group=SOURCES))}


def _open_embedded(name: str) -> Source:
    return cast(Source, loaded(_embedded()[name], SourceError)())


def _opened() -> dict[str, Source]:
    """Every embedded source, without those of an extra that is not installed."""
    sources = {}
    for name in _embedded():
        with suppress(ExtraMissing):
            sources[name] = _open_embedded(name)
    return sources


def check_name(name: str) -> None:
    """Raises ``SourceError`` for an invalid name: it becomes part of file names and partition keys."""
    if not _NAME.fullmatch(name) or name in _embedded():
        rule = f"in lower case letters, digits and '_', like 'streets', and not {' or '.join(map(repr, _embedded()))}"
        raise SourceError(f"a source is named {rule}; found {name!r}")


class Catalog:
    """Sources by name, and their shards as partitions."""

    def __init__(self, folder: StorePath) -> None:
        self.folder = folder

    def add(self, name: str, config: SourceConfig) -> StorePath:
        """Writes a source's file. Raises ``SourceError`` for an invalid name."""
        check_name(name)
        path = self.folder / f"{name}.yaml"
        write_whole(path, as_yaml(config))
        return path

    def remove(self, name: str) -> StorePath:
        """Removes an added source's file. Raises ``SourceError`` where there is none."""
        if name not in (configs := self.configs()):
            raise SourceError(f"there is no added source {name!r}; there are {', '.join(configs) or 'none'}")
        remove_file(path := self.folder / f"{name}.yaml")
        return path

    def configs(self) -> dict[str, SourceConfig]:
        """The added sources. Raises ``SourceError`` that names the file and the field."""
        with storage_errors(str(self.folder)):
            paths = [path for path in children(self.folder) if path.suffix == ".yaml"]
        for path in paths:
            check_name(path.stem)
        return {path.stem: read_config(path) for path in paths}

    def open(self, name: str) -> Source:
        if name in _embedded():
            return _open_embedded(name)
        configs = self.configs()
        if name not in configs:
            raise SourceError(f"there is no source {name!r}; there are {', '.join([*_embedded(), *configs])}")
        return open_source(name, configs[name])

    def languages(self) -> dict[str, str]:
        """The language of each source's questions (ISO 639), of those that state it."""
        stated = {name: getattr(source, "language", "") for name, source in _opened().items()}
        stated |= {name: config.language for name, config in self.configs().items()}
        return {name: language for name, language in stated.items() if language}

    def visual_search(self) -> dict[str, bool]:
        """Map the sources that state it to whether their questions are visual search."""
        stated = {name: config.visual_search for name, config in self.configs().items()}
        return {name: is_search for name, is_search in stated.items() if is_search is not None}

    def uses(self) -> dict[str, tuple[Use, ...]]:
        added: dict[str, tuple[Use, ...]] = {name: config.uses for name, config in self.configs().items()}
        return {name: getattr(source, "used_for", ("sft",)) for name, source in _opened().items()} | added

    def partitions(self) -> dict[str, tuple[str, int]]:
        """Every partition with its source and shard: those of embedded sources, then those of added ones, by name."""
        shards = {name: source.n_shards for name, source in _opened().items()}
        shards |= {name: config.n_shards for name, config in self.configs().items()}
        return {partition_key(name, shard): (name, shard) for name, n in shards.items() for shard in range(n)}


def as_yaml(config: SourceConfig) -> str:
    """A source's file."""
    fields = config.model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=110)


def read_config(path: StorePath) -> SourceConfig:
    """One file. Raises ``SourceError`` that names the file and the field."""
    try:
        return SourceConfig.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        names = (*SourceConfig.model_fields, *Columns.model_fields) if first["type"] == "extra_forbidden" else ()
        hint = did_you_mean([str(first["loc"][-1])] if first["loc"] else [], names)
        raise SourceError(f"{path}: {field}: {first['msg']}{hint}: correct it, or delete the file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} is not YAML: correct it, or delete it ({' '.join(str(error).split())})") from error


@cache
def public_sources() -> Mapping[str, SourceConfig]:
    """Every bundled file by its name, in the order of the names."""
    return {path.stem: read_config(path) for path in sorted(_PUBLIC.glob("*.yaml"))}


def public_source(name: str) -> SourceConfig:
    """One of them. Raises ``SourceError`` that lists the names there are."""
    sources = public_sources()
    if name not in sources:
        raise SourceError(f"there is no public source {name!r}; there are {', '.join(sources)}")
    return sources[name]


def public_file(name: str) -> str:
    """The bundled file, with its comments."""
    public_source(name)
    return (_PUBLIC / f"{name}.yaml").read_text(encoding="utf-8")


def placed(name: str, path: Path | None = None, *, n_shards: int = 1) -> SourceConfig:
    """The public source ``name`` on the hub, or downloaded to ``path``, a folder or a parquet file. Raises
    ``SourceError`` for a path that does not fit it, and without a path where it needs a folder."""
    config = public_source(name)
    changes: dict[str, Any] = {"n_shards": n_shards}
    if path is None:
        if config.about and needs_folder(config):
            unpack = f"Unpack there: {config.about.get}.\n" if config.about.get else ""
            raise SourceError(
                f"{name} has its images or videos in files beside its questions. Download it:\n"
                f"  hf download {config.about.hub} --repo-type dataset --local-dir FOLDER\n"
                f"{unpack}Then: darkroom sources add {name} --path FOLDER"
            )
        return config.model_copy(update=changes)
    whole, is_parquet = path.absolute(), path.suffix == ".parquet"
    if path.is_file() and (config.is_release or (is_parquet and config.kind == "huggingface")):
        place = (whole, None) if is_parquet else (whole.parent, path.name)
        changes |= {"path": str(place[0]), "questions": place[1], "files": (), "split": "train"}
        changes |= {} if config.is_release else {"kind": "parquet"}
    elif path.is_dir():
        changes["path"] = str(whole)
    else:
        expected = "a folder" if config.kind == "jsonl" else "a folder or a parquet file"
        raise SourceError(f"{name}: expected {expected}, downloaded; there is none at {path}")
    return config.model_copy(update=changes)


def needs_folder(config: SourceConfig) -> bool:
    """True if its images or videos are separate files, which must be downloaded and unpacked first."""
    return config.kind == "jsonl" or bool(config.about and config.about.get)
