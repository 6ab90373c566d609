"""The embedded source: rows made at run time from what PyPI packages carry, equal wherever those versions run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.sources.base import BadRow, SourceRow
from pipelines.sources.demo.charts import charts
from pipelines.sources.demo.damaged import damaged
from pipelines.sources.demo.diagrams import diagrams
from pipelines.sources.demo.figures import figures
from pipelines.sources.demo.films import films
from pipelines.sources.demo.lazy import LazyRow, built, installed
from pipelines.sources.demo.maths import maths
from pipelines.sources.demo.notices import notices
from pipelines.sources.demo.overviews import overviews
from pipelines.sources.demo.pages import pages
from pipelines.sources.demo.photographs import photographs
from pipelines.sources.demo.scenes import scenes
from pipelines.sources.demo.snapshots import snapshots

DEMO_VERSION = "2"
PACKAGES = ("av", "matplotlib", "numpy", "pillow", "reasoning-gym", "scikit-image", "scikit-learn")


@dataclass(frozen=True, slots=True)
class DemoSource:
    """Everything that the modules of this package make, dealt to ``n_shards`` shards one row after the other.

    Args:
        n_shards: How many shards the rows are dealt to, one after the other.
        seed: Other scenes, pages, charts, problems and notices, and another order of choices; the photographs stay.
        n_scenes: How many scenes; up to 117 ask different questions.
    """

    n_shards: int = 2
    seed: int = 0
    n_scenes: int = 24

    def __post_init__(self) -> None:
        if self.n_shards < 1 or self.n_scenes < 0:
            raise ValueError(
                f"the demo needs n_shards >= 1 and n_scenes >= 0; found {self.n_shards} and {self.n_scenes}"
            )

    @property
    def name(self) -> str:
        """Always ``demo``."""
        return "demo"

    @property
    def fingerprint(self) -> str:
        """Digest of the parameters, ``DEMO_VERSION`` and the versions of the packages that determine the bytes."""
        determined_by = {
            "demo": DEMO_VERSION,
            "n_shards": self.n_shards,
            "seed": self.seed,
            "n_scenes": self.n_scenes,
            "packages": {package: installed(package) for package in PACKAGES},
        }
        return hashlib.sha256(json.dumps(determined_by, sort_keys=True).encode()).hexdigest()

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """The rows of one shard, each built when it is reached. Raises ``ValueError`` when there is no such shard."""
        if not 0 <= shard < self.n_shards:
            raise ValueError(f"the demo has shards 0 to {self.n_shards - 1}; found {shard}")
        return (built(row) for row in self._all()[shard :: self.n_shards])

    def _all(self) -> list[LazyRow]:
        seed = self.seed
        return [
            *scenes(self.n_scenes, seed),
            *photographs(seed),
            *pages(seed),
            *charts(seed),
            *maths(seed),
            *films(seed),
            *notices(seed),
            *diagrams(seed),
            *figures(seed),
            *damaged(),
            *overviews(seed),
            *snapshots(seed),
        ]
