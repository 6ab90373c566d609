"""Where everything lies: one folder (``DARKROOM_HOME``) with images, tables, datasets, checkpoints and the ledger.

<home>/images/        every image once, by content
<home>/image_cache/   what was read of a remote image store
<home>/tables/        the stages' tables and rejects, by asset and partition
<home>/datasets/      what ships: <name>/<config>/ with parquet and a card
<home>/checkpoints/   what training wrote
<home>/evaluations/   how checkpoints did, a folder each
<home>/benchmarks.yaml  benchmarks that no row may hold (docs/decontamination.md)
<home>/contamination/ what of them was found, by family
<home>/calibrations/  judges against people's labels, a file each (`darkroom calibrate`)
<home>/annotation/    the annotation campaign, its journal and its server
<home>/environments/  programs with pins of their own (vLLM, Label Studio)
<home>/sources/       sources that `darkroom ingest` made
<home>/ledger.sqlite  every paid or slow act
<home>/dagster/       DAGSTER_HOME: runs and their history
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from pipelines.storage.image_cache import ImageCache
from pipelines.storage.images import ImageStore
from pipelines.storage.ledger import Ledger
from pipelines.storage.settings import WorkspaceSettings
from pipelines.storage.tables import Tables


@dataclass(frozen=True)
class Workspace:
    """The folder and what is opened in it. Use it as a context manager: it closes the ledger."""

    home: Path
    images_url: str
    ledger_url: str
    environments: Path
    """Where programs are installed whose pins exclude ours."""
    image_cache_gb: float = 10.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        settings = WorkspaceSettings.from_environment(environment)
        home = settings.home.absolute()
        return cls(
            home=home,
            images_url=settings.images or str(home / "images"),
            image_cache_gb=settings.image_cache_gb,
            ledger_url=settings.ledger or f"sqlite:///{home / 'ledger.sqlite'}",
            environments=(settings.environments or home / "environments").absolute(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "ledger" in self.__dict__:
            self.ledger.close()

    @cached_property
    def images(self) -> ImageStore:
        """The image store. Raises ``StorageError`` for a URL that none can have."""
        n_bytes = int(self.image_cache_gb * 1e9)
        cache = ImageCache(self.home / "image_cache", n_bytes) if n_bytes else None
        return ImageStore(self.images_url, cache)

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger. Raises ``LedgerUnavailable``."""
        self.home.mkdir(parents=True, exist_ok=True)
        return Ledger(self.ledger_url)

    @cached_property
    def tables(self) -> Tables:
        return Tables(self.home / "tables")

    def dataset(self, name: str, config: str) -> Path:
        return self.home / "datasets" / name / config

    def checkpoint(self, name: str) -> Path:
        return self.home / "checkpoints" / name

    @property
    def benchmarks(self) -> Path:
        """The list of benchmarks that no row may hold; it need not be there."""
        return self.home / "benchmarks.yaml"

    @property
    def calibrations(self) -> Path:
        return self.home / "calibrations"

    @property
    def annotation(self) -> Path:
        return self.home / "annotation"

    @property
    def sources(self) -> Path:
        return self.home / "sources"
