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

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pipelines.decontamination.base import DecontaminationFault
from pipelines.digest import digest
from pipelines.rejects import Reason
from pipelines.sources import BadRow, SourceConfig, SourceFault, SourceRow

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
        """Changes with the files and with the mapping. Raises ``DecontaminationFault``."""
        if isinstance(self.config, FolderConfig):
            seen = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in self._files()]
            return digest([self.name, seen])
        try:
            return _answerless(self.config).open(self.name).fingerprint
        except SourceFault as fault:
            raise self._fault(fault) from fault

    def rows(self) -> Iterator[SourceRow | BadRow]:
        """The rows, in order. Raises ``DecontaminationFault`` that names the benchmark and the file."""
        if isinstance(self.config, FolderConfig):
            folder = Path(self.config.path)
            for path in self._files():
                yield _picture(path, str(path.relative_to(folder)))
            return
        try:
            source = _answerless(self.config).open(self.name)
            for shard in range(source.n_shards):
                yield from source.rows(shard)
        except SourceFault as fault:
            raise self._fault(fault) from fault

    def _files(self) -> list[Path]:
        folder = Path(self.config.path)
        if not folder.is_dir():
            raise DecontaminationFault(f"benchmark {self.name!r}: there is no folder {folder}")
        return [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in _SUFFIXES and path.is_file()]

    def _fault(self, fault: SourceFault) -> DecontaminationFault:
        return DecontaminationFault(f"benchmark {self.name!r}: {fault}")


def read_benchmarks(path: Path) -> list[Benchmark]:
    """The benchmarks of a file, by name. Raises ``DecontaminationFault`` that names the file and the field."""
    try:
        text = path.read_text(encoding="utf-8")
        listed: Any = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
        configs = _CONFIGS.validate_python(listed)
    except OSError as fault:
        raise DecontaminationFault(f"the list of benchmarks {path} cannot be read: {fault.strerror}") from fault
    except ValidationError as fault:
        first = fault.errors()[0]
        raise DecontaminationFault(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from fault
    except (yaml.YAMLError, ValueError) as fault:
        raise DecontaminationFault(f"{path} is neither YAML nor JSON: {fault}") from fault
    return [Benchmark(name, config) for name, config in configs.items()]


def _answerless(config: SourceConfig) -> SourceConfig:
    """With a column that is there in the place of the answers, unless the file maps one."""
    columns = config.columns
    if "answer" in columns.model_fields_set:
        return config
    return config.model_copy(update={"columns": columns.model_copy(update={"answer": columns.question})})


def _picture(path: Path, row: str) -> SourceRow | BadRow:
    try:
        return SourceRow(row=row, images=(path.read_bytes(),), question="", answer="")
    except OSError as fault:
        return BadRow(row, Reason.UNREADABLE_IMAGE, f"{path}: {fault.strerror}", {})
