"""Public benchmarks by mapping: one YAML file each, a source's file and how answers are scored.

    opened("hr_bench_4k", Path("downloads/hr_bench_4k.parquet"))
    opened("mine", Path("mine.yaml"))         # a file of your own, with the same fields

A benchmark is no source: what lies here is never offered for training (``darkroom sources list`` does not show it).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ValidationError

from pipelines.sources.catalog import SourceConfig
from train.faults import TrainFault

_FOLDER = Path(__file__).parent
Scoring = Literal["grader", "anls"]
"""``grader``: by the rule that fits the answer (``pipelines/grading``). ``anls``: by likeness to an accepted answer."""


class BenchmarkConfig(SourceConfig):
    """One benchmark as its file has it."""

    scoring: Scoring = "grader"
    accepted: str | None = None
    """``anls``: the column with all accepted answers; it is one of ``columns.details``."""
    cycle: str | None = None
    """The column that says in which order a question's choices stand, where each is asked in several orders; it is one
    of ``columns.details``."""


def bundled() -> dict[str, BenchmarkConfig]:
    """Every bundled file by its name, in the order of the names."""
    return {path.stem: _read(path) for path in sorted(_FOLDER.glob("*.yaml"))}


def opened(name: str, path: Path) -> BenchmarkConfig:
    """The bundled benchmark ``name``, downloaded to ``path``; or a file of the user's. Raises ``TrainFault``."""
    if path.suffix in (".yaml", ".yml"):
        return _read(path)
    known = bundled()
    if name not in known:
        raise TrainFault(
            f"there is no benchmark {name!r}; there are {', '.join(known)}. For one of your own write a YAML file with "
            f"its path and columns as in docs/sources.md, and name that: --benchmark {name}=FILE.yaml"
        )
    return known[name].model_copy(update=_place(name, known[name], path))


def _place(name: str, config: BenchmarkConfig, path: Path) -> Mapping[str, Any]:
    """Where a user has it: a folder as on the hub, or one parquet file of it."""
    if path.is_dir():
        return {"path": str(path.absolute())}
    if path.is_file() and path.suffix == ".parquet" and config.kind == "huggingface":
        return {"kind": "parquet", "path": str(path.absolute()), "files": (), "config": None, "split": "train"}
    hub = config.about.hub if config.about else config.path
    files = "a folder" if config.kind == "jsonl" else "a folder or a parquet file"
    raise TrainFault(
        f"{name} is {files}, downloaded; there is none at {path}. On a machine with a network: "
        f"hf download {hub} --repo-type dataset --local-dir FOLDER"
    )


def _read(path: Path) -> BenchmarkConfig:
    try:
        config = BenchmarkConfig.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except OSError as fault:
        raise TrainFault(f"the benchmark's file {path} cannot be read: {fault.strerror}") from fault
    except ValidationError as fault:
        first = fault.errors()[0]
        raise TrainFault(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from fault
    except (yaml.YAMLError, UnicodeDecodeError) as fault:
        raise TrainFault(f"{path} is not YAML: {fault}") from fault
    for name in (config.accepted, config.cycle):
        if name and name not in config.columns.details:
            raise TrainFault(f"{path}: {name!r} is not among columns.details; add it there, so that rows keep it")
    return config
