"""Hugging Face datasets (hub name, local folder, saved), parquet, CSV and TSV files, streamed through ``datasets``.

A shard is a set of the dataset's files, so there are at most as many shards as files. Images are not decoded. Without a
network the hub's client gives up at once, where `huggingface_hub` would repeat each request for half a minute; a
process that has reached the hub before keeps the hub's own behaviour.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import datasets
import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import get_session, set_client_factory
from huggingface_hub.errors import OfflineModeIsEnabled

from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.sources import BadRow, SourceError, SourceRow
from darkroom.pipelines.sources.columns import missing_columns, value_at
from darkroom.pipelines.sources.mapping import map_row
from darkroom.pipelines.sources.source_config import SourceConfig, of_split

_BATCH = 16
"""Rows in memory at once: each may contain images of many megabytes."""

# ConnectionError, ArrowInvalid and others among them
_ERRORS = (OSError, ValueError, datasets.exceptions.DatasetsError)


class TabularSource:
    """Rows of a dataset that ``datasets.load_dataset`` can stream. ``config.path`` is a hub name, a local dataset
    folder, or (of the kinds ``parquet`` and ``tsv``) a file or a folder of them. Relative paths in rows are below
    ``config.folder``, or inside it if it is a ZIP archive; without it below ``path``."""

    def __init__(self, name: str, config: SourceConfig) -> None:
        self.name, self._config, self.n_shards = name, config, config.n_shards
        path = Path(config.path)
        self._folder = Path(config.folder) if config.folder else path if path.is_dir() else path.parent

    @cached_property  # a look at every file: once for all shards
    def fingerprint(self) -> str:
        """Changes with the local files, or with the revision on the hub, and with the mapping."""
        config = self._config
        place = [config.path, config.config, config.split or "train", config.revision, str(self._folder), config.files]
        mapping = config.columns.model_dump(mode="json", exclude_defaults=True)
        files = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in self._files()]
        return digest([[self.name, *place], mapping, config.n_shards, config.license, files])

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        stream, columns = self._stream, self._config.columns
        schemas = (table.schema for table in self._tables(stream))
        schema = stream.features.arrow_schema if stream.features else next(schemas, pa.schema([]))
        texts = [field.name for field in schema if field.type in (pa.string(), pa.large_string())]  # may contain JSON
        if missing := missing_columns(columns, _nested(schema), texts):
            raise self._error(f"{self._config.path} has no column {missing}. Name the right ones in the mapping")
        if self.n_shards > (n_files := stream.num_shards):
            raise self._error(f"{self.n_shards} shards of {n_files} files; set n_shards to {n_files} or less")
        part = stream.shard(num_shards=self.n_shards, index=shard) if self.n_shards > 1 else stream
        for number, row in enumerate(self._rows(part)):
            row_id = value_at(row, columns.row_id) if columns.row_id else None
            where = f"{self._config.split or 'train'}/{shard}/{number}" if row_id is None else str(row_id)
            yield from map_row(row, columns, where=where, folder=self._folder, license=self._config.license)

    def first_rows(self, n_rows: int) -> list[dict[str, Any]]:
        """Rows as the files have them, for a proposal of their mapping."""
        return list(islice(self._rows(self._stream), n_rows))

    def _rows(self, stream: Any) -> Iterator[dict[str, Any]]:
        return (row for table in self._tables(stream) for row in table.to_pylist())

    def _tables(self, stream: Any) -> Iterator[pa.Table]:
        try:
            yield from stream.iter(batch_size=_BATCH)
        except _ERRORS as error:
            raise self._error(f"cannot read {self._damaged() or self._config.path}: {error}") from error

    def _error(self, problem: str) -> SourceError:
        return SourceError(f"source {self.name!r}: {problem}")

    def _damaged(self) -> Path | None:
        """The first local parquet file that cannot be read to its end."""
        return next((path for path in self._files() if path.suffix == ".parquet" and not _is_readable(path)), None)

    def _files(self) -> list[Path]:
        path = Path(self._config.path)
        if path.is_dir():
            return [file for file in sorted(path.rglob("*")) if file.is_file()]
        return [path] if path.is_file() else []

    @cached_property
    def _stream(self) -> Any:
        """Rows as Arrow tables, in which images are the bytes or the path in the files."""
        try:
            return self._load().with_format("arrow")
        except _ERRORS as error:
            raise self._error(
                f"cannot load {self._damaged() or self._config.path}: {error}. "
                "Expected a readable local path, or a dataset on a hub that answers: check the network, or "
                "download it and name its folder as `path` in the source's file"
            ) from error

    def _load(self) -> Any:
        config, path = self._config, Path(self._config.path)
        load_files = partial(datasets.load_dataset, split="train", streaming=True)
        if config.kind in ("csv", "tsv"):
            files = self._local(f".{config.kind}")
            # cells are texts (007 stays 007), an empty one is empty; rows hold whole images, so few are parsed at once
            separator, header = _header(files[0])
            features = datasets.Features({name: datasets.Value("string") for name in header})
            reading = {"features": features, "keep_default_na": False, "chunksize": _BATCH}
            return load_files("csv", data_files=files, sep=separator, **reading)
        if config.kind == "parquet" or path.suffix == ".parquet":
            return load_files("parquet", data_files=self._local(".parquet"))
        if saved := self._saved(path):
            return load_files("arrow", data_files=saved)
        give_up_without_a_network()
        reading = {"data_files": list(config.files) or None, "revision": config.revision, "streaming": True}
        if config.split is None and path.is_dir():
            splits = datasets.load_dataset(config.path, config.config, **reading)
            self._check_split(list(splits))
            return next(iter(splits.values()))
        return datasets.load_dataset(config.path, config.config, split=config.split or "train", **reading)

    def _saved(self, path: Path) -> list[str]:
        """The files of `Dataset.save_to_disk`, of a split of `DatasetDict.save_to_disk`; none of other folders."""
        if (path / "dataset_dict.json").is_file():
            splits = json.loads((path / "dataset_dict.json").read_bytes())["splits"]
            self._check_split(splits)
            path /= self._config.split or splits[0]
        if not (path / "state.json").is_file():
            return []
        return [str(path / file["filename"]) for file in json.loads((path / "state.json").read_bytes())["_data_files"]]

    def _check_split(self, splits: Sequence[str]) -> None:
        split = self._config.split
        if split not in splits if split else len(splits) > 1:
            problem = f"no split {split!r}" if split else "several splits, and none is chosen"
            raise self._error(f"{self._config.path} has {problem}. Set `split` to one of: {', '.join(splits)}")

    def _local(self, suffix: str) -> list[str]:
        """The local files of a kind that ``config.files`` names, or those of the split."""
        patterns, folder = self._config.files, Path(self._config.path)
        files = [path for path in self._files() if path.suffix == suffix]
        if patterns:
            files = [path for path in files if any(path.match(pattern) for pattern in patterns)]
        elif folder.is_dir():
            files = of_split(files, folder, self._config.split)
        if not files:
            raise self._error(f"there are no {suffix.removeprefix('.')} files at {self._config.path}")
        return [str(path) for path in files]


def _header(file: str) -> tuple[str, list[str]]:
    with open(file, encoding="utf-8-sig", newline="") as lines:
        first = next(iter(lines), "")
        lines.seek(0)
        separator = max("\t" if file.endswith(".tsv") else ",;", key=first.count)
        return separator, next(csv.reader(lines, delimiter=separator), [])


def _is_readable(path: Path) -> bool:
    try:
        with pq.ParquetFile(path) as file:
            for _ in file.iter_batches(_BATCH):
                pass
    except (OSError, ValueError):
        return False
    return True


def _nested(fields: Any, prefix: str = "") -> Iterator[str]:
    """Names as ``columns.nested_names`` gives them, from a schema."""
    for field in fields:
        yield f"{prefix}{field.name}"
        storage = getattr(field.type, "storage_type", field.type)
        if pa.types.is_struct(storage):
            yield from _nested(storage, f"{prefix}{field.name}.")


class _Client(httpx2.Client):
    has_connected: ClassVar[bool] = False
    """In this process: the hub's client is closed and made anew after an error."""

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Raises ``OfflineModeIsEnabled``, which is not repeated, where no request has found a connection yet."""
        try:
            response = super().send(request, **options)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if _Client.has_connected:
                raise
            raise OfflineModeIsEnabled(f"{request.url.host} cannot be reached: {error}") from error
        _Client.has_connected = True
        return response


@cache
def give_up_without_a_network() -> None:
    """Makes it the client of all requests to the hub in this process, otherwise as the hub's own is set up."""
    standard = get_session()
    options = {name: getattr(standard, name) for name in ("event_hooks", "follow_redirects", "timeout")}
    set_client_factory(partial(_Client, **options))
