"""The samples of one source, as its shards' tables have them."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.engine import SAMPLES
from pipelines.records import Sample
from pipelines.tables import TableKey, Tables


def samples_of(tables: Tables, source: str) -> Iterator[Sample]:
    """Shard after shard; none of a source that was not materialised."""
    for path in sorted(tables.root.joinpath(*SAMPLES).glob(f"{source}-[0-9]*.parquet")):
        if not path.name.endswith(".rejects.parquet"):
            rows = tables.read(TableKey(SAMPLES, path.stem), Sample)
            yield from (sample for sample in rows if sample.source == source)
