"""Public benchmarks, one YAML file each: a source mapping and a scoring rule.

    opened("hr_bench_4k", Path("downloads/hr_bench_4k.parquet"))
    opened("mine", Path("mine.yaml"))         # a file of your own, with the same fields

A benchmark is not a source: it is never offered for training (``darkroom sources list`` does not list it).
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, Field

from darkroom.pipelines.sources.source_config import SourceConfig
from darkroom.pipelines.storage.user_files import config_errors
from darkroom.train.runs import TrainError

_FOLDER = Path(__file__).parent
NumberScoring = Literal["relative", "relaxed", "rounded", "close", "numbers", "positions", "overlap"]
TextScoring = Literal["anls", "braced", "contains", "contains_unspaced", "letters", "yes_no"]
Scoring = Literal["grader", TextScoring, NumberScoring, "judged", "share"]
"""``grader``: by the rule that fits the answer (``pipelines/verification/grading``). ``judged``: by a judge, right or
wrong. ``share``: by a judge, how much of the answer is right. The others: ``train/evaluation/scorings.py``."""
_Texts = Literal["same", "within", "anagram", "option", "closest", "in_prompt", "text", "wrong"]
Comparison = Literal[
    _Texts, "integer", "precision", "hundredths", "pi", "scaled", "thresholds", TextScoring, NumberScoring
]

OwnFigures = Literal["category_heads", "category_mean", "category_parts", "hallusionbench", "vsi_bench", "wemath"]
NEEDED: Mapping[OwnFigures, tuple[str, ...]] = {
    "hallusionbench": ("category", "subcategory", "set_id", "figure_id", "question_id"),
    "wemath": ("ID", "key"),
}
"""The columns of ``columns.details`` that figures are computed from; the others take the category."""


class OfficialRule(BaseModel, extra="forbid", frozen=True):
    """A step of a set's own scoring, for rows ``of`` a category, an ``answer_type`` or ``choices``, and right answers
    with ``gold`` in them: ``drop`` is removed from an answer, and what ``find`` finds is compared."""

    of: str = ""
    gold: re.Pattern[str] = re.compile("")
    drop: re.Pattern[str] = re.compile(r"\A\Z")
    find: re.Pattern[str] = re.compile(r"(?s).*")
    lower: bool = False
    compare: Comparison = "same"


class BenchmarkConfig(SourceConfig, frozen=True):
    """One benchmark file."""

    scoring: Scoring = "grader"
    """Scoring of questions without choices; a choice is a choice under every scoring."""
    scoring_by_category: Mapping[str, Scoring] = Field(default={})
    """Categories with another one."""
    accepted: str | None = None
    """The column with all accepted answers; it is one of ``columns.details``."""
    cycle: str | None = None
    """The column with the order of the choices of questions in several orders, one of ``columns.details``."""
    variants: str | None = None
    """The column that names a question which comes in several versions, with other images or texts; it is one of
    ``columns.details``. Only such groups count as independent, and ``circular`` is the share right in all versions."""
    figures: OwnFigures | None = None
    """Figures of its own, from several rows or by part (``train/evaluation/results.py``)."""
    official: tuple[OfficialRule, ...] = ()
    """The set's own scoring; without rules, and under ``--strict``, the fields above decide."""
    official_code: str = ""
    differs: str = ""
    papers: tuple[str, ...] = ()
    unchecked: str = ""
    """For people: the repository and file of that scoring; what it scores otherwise and, after "not here", what no rule
    has; the papers whose tables have the set; facts that could not be verified without the hub."""


@cache
def bundled() -> Mapping[str, BenchmarkConfig]:
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
    config, where = configs[name], {"path": str(path.absolute())}  # a folder as on the hub, or one file of it
    if path.is_dir() or (config.kind == "tsv" and path.is_file()):
        return config.model_copy(update=where)
    if path.is_file() and path.suffix == ".parquet" and config.kind == "huggingface":
        return config.model_copy(update={**where, "kind": "parquet", "files": (), "config": None, "split": "train"})
    kinds = {"jsonl": "a folder", "tsv": "a TSV file or a folder of them"}
    missing = f"{name} is {kinds.get(config.kind, 'a folder or a parquet file')}, downloaded; there is none at {path}"
    raise TrainError(f"{missing}. On a machine with a network: {download(config)}")


def download(config: BenchmarkConfig) -> str:
    hub, unpack = (config.about.hub, config.about.get) if config.about else (config.path, "")
    command = f"wget {hub}" if "://" in hub else f"hf download {hub} --repo-type dataset --local-dir FOLDER"
    return f"{command}; {unpack}" if unpack else command


def _read(path: Path) -> BenchmarkConfig:
    with config_errors(path, TrainError):
        config = BenchmarkConfig.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    for name in (config.accepted, config.cycle, config.variants, *NEEDED.get(config.figures or "category_mean", ())):
        if name and name not in config.columns.details:
            raise TrainError(f"{path}: {name!r} is not among columns.details; add it there so that rows keep it")
    return config
