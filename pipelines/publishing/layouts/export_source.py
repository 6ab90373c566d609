"""The source of an export: a split of a shipped dataset, and for prompts the protocol and mode."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import yaml

from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.publishing.dataset_reader import (
    Kind,
    dataset_files,
    find_datasets,
    kind_of,
    read_files,
    require_columns,
    split_of,
)
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.sandbox.errors import UserError

RL = "rl"
DEFAULT_PROTOCOL = "thyme"
NEEDED: Mapping[Kind, list[str]] = yaml.safe_load(Path(__file__).with_name("needed_columns.yaml").read_text())
"""The columns without which a dataset cannot be exported."""


class LayoutError(UserError):
    """The export cannot be made: what was expected, what was found, what to do. Nothing is written."""


@dataclass(frozen=True, slots=True)
class ExportSource:
    """A dataset to export: its name and the parquet files of one split, in order."""

    name: str
    split: str
    files: tuple[StorePath, ...]
    kind: Kind = "trajectories"
    protocol: str = ""
    """Of prompts, with its mode; a trajectory names its own."""
    mode: str = ""

    @property
    def folder_name(self) -> str:
        return "_".join(filter(None, (self.name, self.protocol, self.mode if self.mode != "free" else "")))

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows; a prompt has its ``protocol`` and ``mode``, too."""
        form = {"protocol": self.protocol, "mode": self.mode} if self.kind == "prompts" else {}
        return (row | form for row in read_files(self.files))

    def in_protocol(self, protocol: str | None, mode: str | None) -> Self:
        """The dataset with its prompts in ``protocol`` (default: thyme) and ``mode`` (default: the protocol's first).
        Raises ``LayoutError`` for unknown ones, and for trajectories, which have a protocol of their own."""
        if self.kind != "prompts":
            if protocol is not None or mode is not None:
                raise LayoutError(f"{self.name} holds {self.kind}, each in its own protocol: leave --protocol away")
            return self
        name = protocol or DEFAULT_PROTOCOL
        if name not in PROTOCOLS:
            raise LayoutError(f"--protocol is one of {', '.join(PROTOCOLS)}; found {name!r}")
        modes = PROTOCOLS[name].modes
        if mode is not None and mode not in modes:
            raise LayoutError(f"--mode of {name} is one of {', '.join(modes)}; found {mode!r}")
        return replace(self, protocol=name, mode=mode or modes[0])


def find_source(dataset: str, datasets: StorePath, *, split: str, prompts: StorePath | None = None) -> ExportSource:
    """Find the dataset that a user names: a family in ``datasets``, ``all``, ``rl`` for ``prompts``, or a folder.
    Raises ``TableMissing`` without one, ``LayoutError`` without the split, ``DatasetError`` for no shipped dataset."""
    folders = shipped_folders(dataset, datasets, prompts)
    files = tuple(file for folder in folders for file in dataset_files(folder, split=split))
    if not files:
        splits = sorted({split_of(file) for folder in folders for file in dataset_files(folder)})
        raise LayoutError(f"{dataset!r} has no split {split!r}; it has {', '.join(splits)}")
    kind = kind_of(files[0])
    for file in files:
        require_columns(file, kind, NEEDED[kind])
    is_path = "://" in dataset or Path(dataset).is_dir()
    return ExportSource(Path(dataset).resolve().name if is_path else dataset, split, files, kind)


def shipped_folders(dataset: str, datasets: StorePath, prompts: StorePath | None) -> list[StorePath]:
    """Folders of the dataset that a user names, as ``find_source`` takes it. Raises as that."""
    if dataset == RL and prompts is not None and not (datasets / dataset).is_dir():
        if not dataset_files(prompts):
            raise LayoutError(f"{prompts} holds no parquet file of a shipped dataset. Run: darkroom rl SOURCE")
        return [prompts]
    return find_datasets(dataset, datasets)
