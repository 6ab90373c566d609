"""A source of the rows that it is given."""

from __future__ import annotations

from collections.abc import Iterator

from darkroom.pipelines.sources import BadRow, SourceRow


class GivenRows:
    name, n_shards, fingerprint = "streets", 1, ""

    def __init__(self, *rows: SourceRow | BadRow) -> None:
        self._rows = rows

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        return iter(self._rows)
