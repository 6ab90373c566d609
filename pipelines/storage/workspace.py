"""The workspace: a home (``DARKROOM_HOME``), a folder or a prefix of an object store, and a local folder:

<home>/images/         every image once, by content
<home>/tables/         the stages' tables and rejects, by asset and partition
<home>/datasets/       what ships: <name>/<config>/ with parquet and a card
<home>/evaluations/    how checkpoints did, a folder each
<home>/benchmarks.yaml benchmarks that no row may hold (docs/decontamination.md)
<home>/contamination/  what of them was found, by family
<home>/calibrations/   judges against people's labels, a file each (`darkroom calibrate`)
<home>/sources/        sources that `darkroom ingest` made

The local folder (``DARKROOM_LOCAL``) is the home itself, unless that is a URL:

<local>/ledger.sqlite  every paid or slow act, unless ``DARKROOM_LEDGER`` names a database
<local>/checkpoints/   what training wrote
<local>/annotation/    the annotation campaign, its journal and its server
<local>/environments/  programs with pins of their own (vLLM, Label Studio)
<local>/image_cache/   what was read of a remote image store
<local>/same_images/   which images are others, changed, of the latest sets that were compared
<local>/benchmarks/    fingerprints of benchmarks, a cache
<local>/dagster/       DAGSTER_HOME: runs and their history
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.atomic_write import local_copy
from darkroom.pipelines.storage.images import ImageCache, ImageStore
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.storage.settings import WorkspaceSettings
from darkroom.pipelines.storage.storage_errors import storage_errors
from darkroom.pipelines.storage.store_paths import StorePath, reach, store_path
from darkroom.pipelines.storage.tables import Tables


@dataclass(frozen=True)
class Workspace:
    """The folders and what is opened in them. Use it as a context manager: it closes the ledger."""

    home: StorePath
    images_url: str
    ledger_url: str
    environments: Path
    """Where programs are installed whose pins exclude ours."""
    local: Path
    """What must be local: the home, unless that is a URL."""
    image_cache_gb: float = 10.0
    ships_unlicensed: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Raises ``UserError``, and ``StorageError`` for a URL that no home can have."""
        settings = WorkspaceSettings.from_environment(environment)
        home = store_path(settings.home)
        home = home.absolute() if isinstance(home, Path) else home
        local = (settings.local or (home if isinstance(home, Path) else Path("data"))).expanduser().absolute()
        return cls(
            home=home,
            images_url=settings.images or str(home / "images"),
            ledger_url=settings.ledger or f"sqlite:///{local / 'ledger.sqlite'}",
            environments=(settings.environments or local / "environments").expanduser().absolute(),
            local=local,
            image_cache_gb=settings.image_cache_gb,
            ships_unlicensed=settings.ships_unlicensed,
        )

    def __enter__(self) -> Self:
        """Raises ``StorageError`` where the home's object store cannot be reached."""
        reach(self.home)
        return self

    def __exit__(self, *_: object) -> None:
        if "ledger" in self.__dict__:
            self.ledger.close()

    @cached_property
    def images(self) -> ImageStore:
        """The image store. Raises ``StorageError`` for a URL that none can have."""
        n_bytes = int(self.image_cache_gb * 1e9)
        return ImageStore(self.images_url, ImageCache(self.local / "image_cache", n_bytes) if n_bytes else None)

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger. Raises ``LedgerUnavailable``, ``StorageError``."""
        with storage_errors(str(self.local)):
            self.local.mkdir(parents=True, exist_ok=True)
        return Ledger(self.ledger_url)

    @cached_property
    def tables(self) -> Tables:
        return Tables(self.home / "tables", self.local / "tables")

    def dataset(self, name: str, config: str) -> StorePath:
        return self.home / "datasets" / name / config

    def local_datasets(self, *names: str) -> Path:
        """A local folder with a dataset, or with all below a name: the home's own, or a copy of the store's."""
        return local_copy(self.home.joinpath("datasets", *names), self.local.joinpath("datasets", *names))

    def local_dataset(self, name: str | Path) -> Path:
        """``local_datasets`` of any folder, or URL of this home or another one. Raises ``StorageError``."""
        folder = store_path(name)
        below, is_ours = str(folder), str(folder).startswith(f"{self.home}/datasets/")
        parts = below.removeprefix(f"{self.home}/datasets/") if is_ours else f"by_url/{digest(below)[:16]}"
        return local_copy(folder, self.local.joinpath("datasets", *parts.split("/")))

    def evaluation(self, checkpoint: str) -> StorePath:
        return self.home / "evaluations" / checkpoint

    def checkpoint(self, name: str) -> Path:
        return self.local / "checkpoints" / name

    @property
    def benchmarks(self) -> StorePath:
        """The list of benchmarks that no row may hold; it need not be there."""
        return self.home / "benchmarks.yaml"

    @property
    def calibrations(self) -> StorePath:
        return self.home / "calibrations"

    @property
    def annotation(self) -> Path:
        return self.local / "annotation"

    @property
    def sources(self) -> StorePath:
        return self.home / "sources"
