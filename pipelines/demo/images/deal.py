"""Which families use which question of the source: three at most, so that no question fills the dataset.

The order in which the questions of a kind are dealt is that of a digest of their names, so it depends on neither the
machine nor the shard; how many go to which families is in ``deal.toml``.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images.material import LazyRow
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.samples import FAMILIES
from darkroom.pipelines.selection.sampling import mixture
from darkroom.pipelines.sources import SourceRow

_SHARES = data_beside(__file__)


def dealt(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The families of each row by its name (``scene/00/1``); rows that are open to all are not there."""
    by_kind: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_kind[name.partition("/")[0]].append(name)
    families: dict[str, tuple[str, ...]] = {}
    for kind, shares in _SHARES.items():
        order = sorted(by_kind[kind], key=lambda name: digest(["deal", name]))
        hands = [hand for hand, n in mixture(shares, len(order)).items() for _ in range(n)]
        families |= {name: tuple(hand.split("+")) for name, hand in zip(order, hands, strict=True)}
    return families


def offered(row: LazyRow, families: Mapping[str, tuple[str, ...]]) -> LazyRow:
    """The row, which says for which families it is where it is not for all."""
    of_row = families.get(row.name)
    return row if of_row is None else LazyRow(row.name, lambda: _for_families(row.build(), of_row))


def _for_families(row: SourceRow, families: tuple[str, ...]) -> SourceRow:
    details = {**json.loads(row.truth.details or "{}"), FAMILIES: families}
    return replace(row, truth=replace(row.truth, details=json.dumps(details, sort_keys=True, ensure_ascii=False)))
