"""Public benchmarks, one YAML file each: a source mapping and a scoring rule.

    opened("hr_bench_4k", Path("downloads/hr_bench_4k.parquet"))
    opened("mine", Path("mine.yaml"))         # a file of your own, with the same fields

A benchmark is not a source: it is never offered for training (``darkroom sources list`` does not list it).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ValidationError

from pipelines.sources.catalog import SourceConfig
from train.runs import TrainError

_FOLDER = Path(__file__).parent
Scoring = Literal["grader", "anls"]
"""``grader``: by the rule that fits the answer (``pipelines/verification/grading``). ``anls``: by likeness to an
accepted answer."""


class BenchmarkConfig(SourceConfig):
    """One benchmark file."""

    scoring: Scoring = "grader"
    accepted: str | None = None
    """``anls``: the column with all accepted answers; it is one of ``columns.details``."""
    cycle: str | None = None
    """The column with the order of the choices, where each question comes in several orders; it is one of
    ``columns.details``."""


def bundled() -> dict[str, BenchmarkConfig]:
    """Bundled benchmarks by name, sorted."""
    return {path.stem: _read(path) for path in sorted(_FOLDER.glob("*.yaml"))}


def opened(name: str, path: Path) -> BenchmarkConfig:
    """The bundled benchmark ``name``, downloaded to ``path``; or a file of the user's. Raises ``TrainError``."""
    if path.suffix in (".yaml", ".yml"):
        return _read(path)
    configs = bundled()
    if name not in configs:
        raise TrainError(
            f"there is no benchmark {name!r}; there are {', '.join(configs)}. For your own, write a YAML file with "
            f"its path and columns as in docs/sources.md, and name that: --benchmark {name}=FILE.yaml"
        )
    return configs[name].model_copy(update=_place(name, configs[name], path))


def _place(name: str, config: BenchmarkConfig, path: Path) -> Mapping[str, Any]:
    """The user's download: a folder as on the hub, or one parquet file of it."""
    if path.is_dir():
        return {"path": str(path.absolute())}
    if path.is_file() and path.suffix == ".parquet" and config.kind == "huggingface":
        return {"kind": "parquet", "path": str(path.absolute()), "files": (), "config": None, "split": "train"}
    hub = config.about.hub if config.about else config.path
    files = "a folder" if config.kind == "jsonl" else "a folder or a parquet file"
    raise TrainError(
        f"{name} is {files}, downloaded; there is none at {path}. On a machine with a network: "
        f"hf download {hub} --repo-type dataset --local-dir FOLDER"
    )


def _read(path: Path) -> BenchmarkConfig:
    try:
        config = BenchmarkConfig.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except OSError as error:
        raise TrainError(f"the benchmark's file {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise TrainError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TrainError(f"{path} is not YAML: {error}") from error
    for name in (config.accepted, config.cycle):
        if name and name not in config.columns.details:
            raise TrainError(f"{path}: {name!r} is not among columns.details; add it there so that rows keep it")
    return config
