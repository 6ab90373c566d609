"""The public datasets that RL rows come from, one YAML file each: a source's file, with what is known of the dataset.

public_sources()["mmk12"].about.hub      # "FanqingM/MMK12"
"""

from __future__ import annotations

from pathlib import Path

from pipelines.sources.catalog import SourceConfig, read_config
from pipelines.sources.faults import SourceFault

_FOLDER = Path(__file__).parent


def public_sources() -> dict[str, SourceConfig]:
    """Every bundled file by its name, in the order of the names."""
    return {path.stem: read_config(path) for path in sorted(_FOLDER.glob("*.yaml"))}


def public_source(name: str) -> SourceConfig:
    """One of them. Raises ``SourceFault`` that lists the names there are."""
    known = public_sources()
    if name not in known:
        raise SourceFault(f"there is no public source {name!r}; there are {', '.join(known)}")
    return known[name]


def public_file(name: str) -> str:
    """The file as it is bundled, with its comments."""
    public_source(name)
    return (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


def placed(name: str, path: Path | None = None, *, n_shards: int = 1) -> SourceConfig:
    """The public source ``name`` as a user has it: on the hub, or downloaded to ``path``, a folder or a parquet file.

    Raises ``SourceFault`` for a path that does not fit it, and where images lie in files that only a folder can have.
    """
    config = public_source(name)
    if path is None:
        _check_hub_is_enough(name, config)
        return config.model_copy(update={"n_shards": n_shards})
    if path.suffix == ".parquet" and path.is_file() and config.kind == "huggingface":
        changes = {"kind": "parquet", "path": str(path.absolute()), "files": (), "split": "train"}
        return config.model_copy(update={**changes, "n_shards": n_shards})
    if not path.is_dir():
        expected = "a folder" if config.kind == "jsonl" else "a folder or a parquet file"
        raise SourceFault(f"{name} is {expected}, downloaded; there is none at {path}")
    return config.model_copy(update={"path": str(path.absolute()), "n_shards": n_shards})


def needs_folder(config: SourceConfig) -> bool:
    """Whether its images or videos are files beside its questions, which must be downloaded and unpacked first."""
    return config.kind == "jsonl" or bool(config.about and config.about.get)


def _check_hub_is_enough(name: str, config: SourceConfig) -> None:
    if not needs_folder(config) or config.about is None:
        return
    unpack = f"Unpack there: {config.about.get}.\n" if config.about.get else ""
    raise SourceFault(
        f"{name} has its images or videos in files beside its questions. Download it:\n"
        f"  hf download {config.about.hub} --repo-type dataset --local-dir FOLDER\n"
        f"{unpack}Then: darkroom sources add {name} --path FOLDER"
    )
