"""The embedded source ``demo``: real images, prose, tables and problems that PyPI packages carry, composed and asked.

No download, no key, no image of ours: scikit-image's and scikit-learn's photographs on drawn walls (``scenes``) and as
they are or turned and underexposed (``photographs``), set and scanned ``pages``, ``charts`` of bundled tables,
``maths`` problems, ``diagrams`` and ``figures`` (problems to be read off an image, and to be drawn), printed
``notices``, ``films`` over the photographs, and ``damaged`` files that intake must quarantine. Most images have
several questions, four at most (``scene/00``, ``scene/00/1`` …), each for three families at most: the order
in which a kind's questions are dealt is that of a digest of their names, and ``deal.toml`` says how many go where.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import ClassVar

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images.charts import charts
from darkroom.pipelines.demo.images.figures import diagrams, figures
from darkroom.pipelines.demo.images.films import films
from darkroom.pipelines.demo.images.material import (
    PHOTOGRAPHS,
    LazyRow,
    built,
    image_row,
    installed,
    photograph_bytes,
    photographs,
    require_packages,
    with_details,
)
from darkroom.pipelines.demo.images.maths import maths
from darkroom.pipelines.demo.images.notices import notices
from darkroom.pipelines.demo.images.pages import pages
from darkroom.pipelines.demo.images.scenes import scenes
from darkroom.pipelines.records import Truth
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.samples import FAMILIES
from darkroom.pipelines.selection.sampling import mixture
from darkroom.pipelines.sources import BadRow, SourceRow

DEMO_VERSION = "7"
PACKAGES = ("av", "matplotlib", "numpy", "pillow", "reasoning-gym", "scikit-image", "scikit-learn")


@dataclass(frozen=True, slots=True)
class DemoSource:
    """Everything that the modules of this package make, dealt to ``n_shards`` shards, rows about one image together.
    Another ``seed`` gives other drawings and another order of choices, but the same photographs. Up to 117 of
    ``n_scenes`` ask different questions."""

    name: ClassVar[str] = "demo"
    language: ClassVar[str] = "en"

    n_shards: int = 2
    seed: int = 0
    n_scenes: int = 32

    def __post_init__(self) -> None:
        require_packages()
        if self.n_shards < 1 or self.n_scenes < 0:
            raise ValueError(f"the demo needs n_shards >= 1, n_scenes >= 0; found {self.n_shards}, {self.n_scenes}")

    @property
    def fingerprint(self) -> str:
        """Digest of the parameters, ``DEMO_VERSION`` and the versions of the packages that determine the bytes."""
        packages = {package: installed(package) for package in PACKAGES}
        determined_by = {"demo": DEMO_VERSION, "packages": packages, **asdict(self)}
        return hashlib.sha256(json.dumps(determined_by, sort_keys=True).encode()).hexdigest()

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """The rows of one shard, each built when it is reached. Raises ``ValueError`` when there is no such shard."""
        if not 0 <= shard < self.n_shards:
            raise ValueError(f"the demo has shards 0 to {self.n_shards - 1}; found {shard}")
        rows = self._all()
        families = assigned(row.name for row in rows)
        by_image = [list(group) for _, group in groupby(rows, key=lambda row: row.name.split("/")[:2])]
        return (built(offered(row, families)) for of_image in by_image[shard :: self.n_shards] for row in of_image)

    def _all(self) -> list[LazyRow]:
        seed = self.seed
        return [
            *scenes(self.n_scenes, seed),
            *photographs("photo", seed),
            *pages(seed),
            *charts(seed),
            *maths(seed),
            *films(seed),
            *notices(seed),
            *diagrams(seed),
            *figures(seed),
            *damaged(),
            *photographs("overview", seed),
            *photographs("snapshot", seed),
        ]


def damaged() -> list[LazyRow]:
    return [LazyRow("damaged/truncated", _truncated), LazyRow("damaged/empty", _empty)]


def _truncated() -> SourceRow:
    whole, license = photograph_bytes("rocket"), PHOTOGRAPHS["rocket"].license
    half, question = whole[: len(whole) // 2], "How many floodlights shine at the foot of the rocket?"
    return image_row("damaged/truncated", half, question, "5", Truth(), category="quantity", license=license)


def _empty() -> SourceRow:
    return image_row("damaged/empty", b"", "What is shown on this picture?", "a bicycle", Truth(), category="object")


_SHARES = data_beside(__file__, "deal")


def assigned(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The families of each row by its name (``scene/00/1``); rows that are open to all are not there."""
    by_kind: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_kind[name.partition("/")[0]].append(name)
    families: dict[str, tuple[str, ...]] = {}
    for kind, shares in _SHARES.items():
        order = sorted(by_kind[kind], key=lambda name: digest(["deal", name]))
        hands = [tuple(hand.split("+")) for hand, n in mixture(shares, len(order)).items() for _ in range(n)]
        families |= zip(order, hands, strict=True)
    return families


def offered(row: LazyRow, families: Mapping[str, tuple[str, ...]]) -> LazyRow:
    """The row, which says for which families it is where it is not for all, and does not say so itself."""

    def build() -> SourceRow:
        made, of_row = row.build(), families.get(row.name)
        is_open = of_row is None or FAMILIES in (made.truth.details or "")
        return made if is_open else with_details(made, **{FAMILIES: of_row})

    return LazyRow(row.name, build)
