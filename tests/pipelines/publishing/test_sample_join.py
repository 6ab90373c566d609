"""Samples by id over many partitions: of one that several hold, the last one's with a licence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.publishing.sft_dataset import SampleJoin
from darkroom.pipelines.records import Sample, Truth
from darkroom.pipelines.storage.tables import TableKey, Tables

BARE = Sample("", "s", "1", "MIT", (), "?", (), "!", Truth(), "")


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """``a`` and ``b`` in the first partition, none in the second, ``b`` again and ``c`` in the third."""
    tables = Tables(tmp_path / "tables")
    for partition, names in (("1", "ab"), ("2", ""), ("3", "bc")):
        samples = [replace(BARE, sample_id=name, license=partition) for name in names]
        tables.write(TableKey(SAMPLES, partition), Sample, samples, (), inputs="", facts={})
    return tables


def test_a_sample_is_that_of_the_last_partition_that_holds_it(tables: Tables) -> None:
    join = SampleJoin(tables, ["1", "2", "3"])
    assert [join[name].license for name in "abcbac"] == ["1", "3", "3", "3", "1", "3"]
    assert SampleJoin(tables, ["3", "1"])["b"].license == "1"


def test_a_sample_with_a_licence_comes_before_one_without(tables: Tables) -> None:
    unlicensed = [replace(BARE, sample_id=name, license="") for name in "bd"]
    tables.write(TableKey(SAMPLES, "4"), Sample, unlicensed, (), inputs="", facts={})
    for order in (["1", "4"], ["4", "1"]):
        assert [SampleJoin(tables, order)[name].license for name in "bd"] == ["1", ""]


def test_a_sample_of_no_partition_is_an_error(tables: Tables) -> None:
    for join in (SampleJoin(tables, ["1", "3"]), SampleJoin(tables, [])):
        for name in ("unknown", "another", "d", "e", "f"):
            with pytest.raises(KeyError, match=name):
                join[name]


def test_each_partition_is_read_once(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    read, stream = list[str](), tables.stream
    monkeypatch.setattr(tables, "stream", lambda key, kind: read.append(key.partition) or stream(key, kind))
    join = SampleJoin(tables, ["1", "3"])
    assert [join[name].sample_id for name in "abbacc"] == list("abbacc")
    assert read == ["1", "3"]
