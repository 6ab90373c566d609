"""The benchmarks that a user points at: a YAML or JSON file that names each and maps its columns as a source's.

    vstar:
      kind: huggingface
      path: /benchmarks/vstar_bench
      split: test
      columns: {images: image, question: text, row_id: question_id}
    hr_bench:
      kind: parquet
      path: /benchmarks/hr_bench_4k.parquet
      columns: {images: image, question: question}
    photographs:
      kind: folder
      path: /benchmarks/private_photographs

Answers are not looked for, so no column of answers is needed. Images as bare base64 must be made data URLs first.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.selection.decontamination.base import DecontaminationError
from darkroom.pipelines.sources import BadRow, SourceError, SourceRow
from darkroom.pipelines.sources.catalog import SourceConfig
from darkroom.pipelines.storage.places import Place

_SUFFIXES = frozenset({".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".jp2", ".png", ".ppm", ".tif", ".tiff", ".webp"})


class FolderConfig(BaseModel):
    """Images alone, in a folder and the folders below it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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
        try:
            return _answerless(self.config).open(self.name).fingerprint
        except SourceError as error:
            raise self._error(error) from error

    def rows(self) -> Iterator[SourceRow | BadRow]:
        """The rows, in order. Raises ``DecontaminationError`` that names the benchmark and the file."""
        if isinstance(self.config, FolderConfig):
            folder = Path(self.config.path)
            for path in self._files():
                yield _image(path, str(path.relative_to(folder)))
            return
        try:
            source = _answerless(self.config).open(self.name)
            for shard in range(source.n_shards):
                yield from source.rows(shard)
        except SourceError as error:
            raise self._error(error) from error

    def _files(self) -> list[Path]:
        folder = Path(self.config.path)
        if not folder.is_dir():
            raise DecontaminationError(f"benchmark {self.name!r}: there is no folder {folder}")
        return [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in _SUFFIXES and path.is_file()]

    def _error(self, error: SourceError) -> DecontaminationError:
        return DecontaminationError(f"benchmark {self.name!r}: {error}")


def read_benchmarks(path: Place) -> list[Benchmark]:
    """The benchmarks of a file, by name. Raises ``DecontaminationError`` that names the file and the field."""
    try:
        text = path.read_text(encoding="utf-8")
        listed: Any = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
        configs = _CONFIGS.validate_python(listed)
    except OSError as error:
        raise DecontaminationError(f"the list of benchmarks {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise DecontaminationError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise DecontaminationError(f"{path} is neither YAML nor JSON: {error}") from error
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
