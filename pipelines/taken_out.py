"""Rejects of every stage of a family, over all partitions, with their samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipelines.engine import SAMPLES, STAGES
from pipelines.records import Reject, Sample
from pipelines.tables import TableKey, Tables

SHIPPED = ("sft_dataset",)


def read_taken_out(tables: Tables, families: Sequence[str] | None = None) -> list[tuple[Reject, Sample | None]]:
    """The rejects of ``families`` (None: of every one, and of intake), by stage, each with its sample if it has one."""
    samples = {sample.sample_id: sample for key in _keys(tables, SAMPLES) for sample in tables.read(key, Sample)}
    rejects = [rejected for key in _reject_keys(tables, families) for rejected in tables.read_rejects(key)]
    return [(rejected, samples.get(rejected.sample_id)) for rejected in rejects]


def families_of(tables: Tables) -> list[str]:
    """The families that have tables."""
    return sorted({path.parents[1].name for stage in STAGES for path in tables.root.glob(f"*/{stage}/*.parquet")})


def _reject_keys(tables: Tables, families: Sequence[str] | None) -> Iterator[TableKey]:
    if families is None:
        yield from _keys(tables, SAMPLES)
    for family in families_of(tables) if families is None else families:
        for stage in STAGES:
            yield from _keys(tables, (family, stage))
        yield from (key for key in _keys(tables, SHIPPED) if key.partition == family)


def _keys(tables: Tables, asset: tuple[str, ...]) -> list[TableKey]:
    """The finished tables of an asset."""
    names = sorted(path.stem for path in tables.root.joinpath(*asset).glob("*.parquet"))
    return [TableKey(asset, name) for name in names if not name.endswith(".rejects")]
