"""Tables on disk: a table that is there is a finished stage."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pyarrow.parquet as pq
import pytest

from darkroom.pipelines.records import Reject, Sample, Truth
from darkroom.pipelines.records.digest import digest, digest_bytes
from darkroom.pipelines.records.reject_reasons import Reason, reject
from darkroom.pipelines.storage.row_files import ROWS_PER_GROUP
from darkroom.pipelines.storage.tables import TableKey, TableMissing, Tables
from tests.pipelines.storage import table_writers

KEY = TableKey(("crop", "drafts"), "streets-0003")


@pytest.fixture
def tables(tmp_path):
    return Tables(tmp_path / "tables")


@pytest.fixture
def rows():
    sample = Sample("id", "streets", "1", "CC0", (), "Which?", (), "This", Truth(angle=90.0), "OCR")
    return [replace(sample, sample_id=f"id{n}", source_row=str(n)) for n in range(3)]


@pytest.fixture
def rejects():
    return [reject(Reason.DUPLICATE, "the same", stage="samples", row={"n": 4}, source_row="4")]


def write(tables, rows, rejects, inputs="inputs", facts=None):
    tables.write(KEY, Sample, rows, rejects, inputs=inputs, facts=facts or {"n_in": 4})


@pytest.mark.parametrize(
    "read",
    [
        lambda tables: tables.read(KEY, Sample),
        lambda tables: tables.read_rejects(KEY),
        lambda tables: next(tables.stream(KEY, Sample)),
        lambda tables: next(tables.columns(KEY, "sample_id")),
        lambda tables: tables.n_rows(KEY),
        lambda tables: tables.n_rejects(KEY),
        lambda tables: tables.facts(KEY),
        lambda tables: tables.fingerprint(KEY),
    ],
)
def test_a_missing_table_names_the_command_that_makes_it(tables, read):
    with pytest.raises(TableMissing, match=r"Run: darkroom materialize streets --family crop$"):
        read(tables)


@pytest.mark.parametrize(
    ("asset", "partition", "command"),
    [
        (("samples",), "my_streets-0003", "darkroom materialize my_streets (for RL: darkroom rl my_streets)"),
        (("pass_rates",), "streets-0003", "darkroom rl streets"),
        (("rl_dataset",), "all", "darkroom rl SOURCE"),
        (("base_model",), "all", "darkroom ui, and materialise base_model there"),
        (("crop", "drafts"), "turn-1", "darkroom ui, and materialise crop there"),
    ],
)
def test_the_command_that_makes_a_table(asset, partition, command):
    assert TableKey(asset, partition).command == command


def test_what_is_missing_has_no_inputs(tables):
    assert tables.inputs(KEY) is None
    assert not tables.exists(KEY)


def test_rows_and_rejects_come_back_as_they_were_written(tables, rows, rejects):
    write(tables, rows, rejects)
    assert tables.read(KEY, Sample) == rows
    assert tables.read_rejects(KEY) == rejects
    assert (tables.n_rows(KEY), tables.n_rejects(KEY)) == (3, 1)
    assert (tables.inputs(KEY), tables.facts(KEY)) == ("inputs", {"n_in": 4})


def test_an_empty_table_is_a_finished_stage(tables):
    write(tables, [], [])
    assert tables.exists(KEY)
    assert tables.read(KEY, Sample) == tables.read_rejects(KEY) == []


@pytest.mark.parametrize("n_done", [0, 1])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_crash_while_writing_leaves_the_stage_unfinished(tables, rows, rejects, monkeypatch, n_done, earlier):
    if earlier:
        write(tables, rows[:1], [], inputs="earlier")
    done: list[str] = []

    def killed(source: str, target: str) -> None:
        if len(done) == n_done:
            raise KeyboardInterrupt
        done.append(str(target))
        os.rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            write(tables, rows, rejects)
    assert not tables.exists(KEY)
    assert tables.inputs(KEY) is None
    write(tables, rows, rejects)
    assert tables.read(KEY, Sample) == rows


def test_a_row_that_no_table_can_hold_leaves_the_earlier_table(tables, rows):
    write(tables, rows, [])
    with pytest.raises(UnicodeEncodeError):
        write(tables, [replace(rows[0], question="\ud800")], [])
    assert tables.read(KEY, Sample) == rows


def test_two_writes_of_the_same_give_the_same_bytes(tables, tmp_path, rows, rejects):
    other = Tables(tmp_path / "other")
    for home in (tables, other):
        write(home, rows, rejects)
    assert tables.path(KEY).read_bytes() == other.path(KEY).read_bytes()
    assert tables.rejects_path(KEY).read_bytes() == other.rejects_path(KEY).read_bytes()


def test_the_fingerprint_stays_when_only_inputs_and_facts_change(tables, rows, rejects):
    write(tables, rows, rejects)
    before = tables.fingerprint(KEY)
    write(tables, rows, rejects, inputs="others" * 50, facts={"n_in": 4, "made": "later"})
    assert tables.fingerprint(KEY) == before


def test_the_fingerprint_changes_with_every_change_of_a_row(tables, rows, rejects):
    seen = set()
    changed = [
        (rows, rejects),
        (rows[::-1], rejects),
        (rows[:2], rejects),
        ([*rows[:2], replace(rows[2], answer="That")], rejects),
        ([*rows[:2], replace(rows[2], truth=Truth())], rejects),
        (rows, []),
        (rows, [replace(rejects[0], evidence="another")]),
        ([], []),
    ]
    for some_rows, some_rejects in changed:
        write(tables, some_rows, some_rejects)
        seen.add(tables.fingerprint(KEY))
    assert len(seen) == len(changed)


def test_a_table_without_its_rejects_is_missing(tables, rows, rejects):
    write(tables, rows, rejects)
    tables.rejects_path(KEY).unlink()
    assert tables.inputs(KEY) is None
    with pytest.raises(TableMissing):
        tables.fingerprint(KEY)


def test_no_half_written_file_is_left_beside_the_tables(tables, rows, rejects):
    write(tables, rows, rejects)
    names = sorted(path.name for path in tables.path(KEY).parent.iterdir())
    assert names == ["streets-0003.parquet", "streets-0003.rejects.parquet"]


def test_a_part_that_grows_is_another_processes_and_an_old_one_is_deleted(tables, rows):
    write(tables, rows, [])
    folder = tables.path(KEY).parent
    for name, seconds_ago in (("grows", 60.0), ("left", 2 * 86_400.0)):
        part = folder / f".{KEY.partition}.parquet.{name}"
        part.touch()
        os.utime(part, (time.time() - seconds_ago,) * 2)
    write(tables, rows, [])
    assert [path.name for path in folder.glob(".*")] == [f".{KEY.partition}.parquet.grows"]


@pytest.mark.e2e
def test_two_processes_that_write_one_table_leave_the_rows_and_the_rejects_of_one(tmp_path):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        writers = [processes.submit(table_writers.write_often, str(tmp_path), tmp_path, n, 200) for n in (1, 2)]
        for writer in writers:
            writer.result()
    tables = Tables(tmp_path)
    n = tables.n_rows(table_writers.KEY)
    assert tables.inputs(table_writers.KEY) == str(n)
    assert tables.n_rejects(table_writers.KEY) == n + 1
    assert not list((tmp_path / "samples").glob(".*"))


def test_rejects_are_a_table_too(tables, rejects):
    tables.write(KEY, Reject, rejects, [], inputs="", facts={})
    assert tables.read(KEY, Reject) == rejects


@pytest.fixture
def many(tables, rows):
    """The rows of a table of three row groups."""
    many = [replace(rows[0], sample_id=f"id{n}") for n in range(2 * ROWS_PER_GROUP + 1)]
    write(tables, iter(many), [])
    return many


def test_rows_stream_in_their_order(tables, many):
    assert tables.read(KEY, Sample) == many
    stream = tables.stream(KEY, Sample)
    assert next(stream) == many[0]
    assert [many[0], *stream] == many


def test_rejects_stream_in_their_order(tables):
    rejects = [reject(Reason.DUPLICATE, f"{n}", stage="samples", row={"n": n}, source_row=f"{n}") for n in range(600)]
    write(tables, [], rejects)
    assert list(tables.stream_rejects(KEY)) == rejects == tables.read_rejects(KEY)


def test_masked_rows_are_those_at_their_places(tables, many):
    mask = np.zeros(len(many), np.bool_)
    mask[[0, 255, 256, len(many) - 1]] = True
    assert list(tables.stream(KEY, Sample, mask=mask)) == [many[0], many[255], many[256], many[-1]]


def test_columns_are_values_by_row(tables, many):
    assert list(tables.columns(KEY, "sample_id", "choices")) == [(row.sample_id, []) for row in many]


def test_a_tables_fingerprint_is_the_digest_of_its_pages(tables, many):
    pages = [
        path.read_bytes()[: -pq.read_metadata(path).serialized_size - 8]
        for path in (tables.path(KEY), tables.rejects_path(KEY))
    ]
    assert tables.fingerprint(KEY) == digest([digest_bytes(of_file) for of_file in pages])


def test_rows_that_fail_while_they_are_written_leave_the_earlier_table(tables, rows):
    def failing():
        yield from rows
        raise OSError("the disk is full")

    write(tables, rows[:1], [])
    with pytest.raises(OSError, match="full"):
        write(tables, failing(), [])
    assert tables.read(KEY, Sample) == rows[:1]


def test_tables_that_exist_are_found_in_the_order_asked_for(tables, rows, rejects):
    asked = [TableKey(asset, f"streets-{n}") for n in (2, 0, 1) for asset in (("crop", "drafts"), ("samples",))]
    for key in asked[:3]:
        tables.write(key, Sample, rows, rejects, inputs="", facts={})
    assert tables.existing([*asked[::-1], TableKey(("absent",), "x")]) == asked[2::-1]
