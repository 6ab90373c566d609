"""Tables in an object store: whole or not at all, whoever writes at the same time and whoever is killed."""

from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from darkroom.pipelines.records import Sample
from darkroom.pipelines.storage.store_paths import store_path
from darkroom.pipelines.storage.tables import TableKey, TableMissing, Tables
from tests.object_store import s3_traffic
from tests.pipelines.storage.table_writers import KEY, SAMPLES, sample, write, write_often


@pytest.fixture(params=["s3", "memory"])
def root(request, tmp_path):
    if request.param == "memory":
        return store_path(f"memory://{tmp_path.name}/tables")
    return store_path(request.getfixturevalue("object_store").url("tables"))


@pytest.fixture
def tables(root, tmp_path) -> Tables:
    return Tables(root, tmp_path / "scratch")


def names(tables: Tables) -> list[str]:
    return sorted(path.name for path in (tables.root / "samples").iterdir())


def test_rows_rejects_and_facts_are_read_as_they_were_written(tables):
    write(tables, [1, 2], [3], inputs="a")
    assert [row.sample_id for row in tables.read(KEY, Sample)] == ["id1", "id2"]
    assert [row.sample_id for row in tables.stream(KEY, Sample)] == ["id1", "id2"]
    assert list(tables.columns(KEY, "sample_id")) == [("id1",), ("id2",)]
    assert [row.source_row for row in tables.read_rejects(KEY)] == ["row/3"]
    assert (tables.n_rows(KEY), tables.n_rejects(KEY), tables.inputs(KEY)) == (2, 1, "a")
    assert tables.facts(KEY) == {"n_out": 2}
    assert tables.exists(KEY)


def test_a_table_that_is_not_there_is_missing(tables):
    assert (tables.exists(KEY), tables.inputs(KEY), tables.keys(SAMPLES)) == (False, None, [])
    for read in (
        lambda: tables.read(KEY, Sample),
        lambda: list(tables.stream(KEY, Sample)),
        lambda: tables.read_rejects(KEY),
        lambda: tables.n_rows(KEY),
        lambda: tables.n_rejects(KEY),
        lambda: tables.fingerprint(KEY),
    ):
        with pytest.raises(TableMissing, match="is not materialised"):
            read()


def test_equal_rows_have_the_fingerprint_that_they_have_in_a_folder(tables, tmp_path):
    local = Tables(tmp_path / "local")
    for each in (tables, local):
        write(each, range(1500), [3], inputs="a")
    assert tables.fingerprint(KEY) == local.fingerprint(KEY)
    write(tables, range(1500), [4], inputs="a")
    assert tables.fingerprint(KEY) != local.fingerprint(KEY)


def test_tables_that_were_copied_from_a_folder_are_read(tables, tmp_path):
    local = Tables(tmp_path / "local")
    write(local, [1], [2], inputs="a")
    for path in (local.path(KEY), local.rejects_path(KEY)):
        (tables.root / "samples" / path.name).write_bytes(path.read_bytes())
    assert tables.inputs(KEY) == "a"
    assert [row.source_row for row in tables.read_rejects(KEY)] == ["row/2"]
    assert tables.fingerprint(KEY) == local.fingerprint(KEY)
    write(tables, [1], [5], inputs="b")
    assert [row.source_row for row in tables.read_rejects(KEY)] == ["row/5"]
    assert len(names(tables)) == 2, "the copied rejects are gone"


def test_a_table_that_is_written_again_leaves_no_rejects_of_the_earlier_one(tables):
    for n in (1, 2, 2):
        write(tables, [n], [n], inputs=str(n))
    assert len(names(tables)) == 2
    assert [row.source_row for row in tables.read_rejects(KEY)] == ["row/2"]


def test_what_is_there_is_known_by_one_listing(tables):
    keys = [TableKey(SAMPLES, f"demo-{n:04d}") for n in range(6)]
    for key in keys[::2]:
        write(tables, [1], [2], inputs="a", key=key)
    write(tables, [1], [], inputs="a", key=TableKey(("crop", "drafts"), "demo-0000"))
    assert tables.existing(reversed(keys)) == keys[::2][::-1]
    assert tables.keys(SAMPLES) == keys[::2]
    assert tables.families() == ["crop", "samples"]
    assert {str(key) for key in tables.all_keys()} == {
        "crop/drafts [demo-0000]",
        *(f"samples [demo-000{n}]" for n in (0, 2, 4)),
    }


def test_nothing_is_left_in_the_local_folder(tables):
    write(tables, [1], [2], inputs="a")
    assert list(tables.scratch.iterdir()) == []


def killed_between(url: str, scratch: Path) -> None:
    """A process that is killed when the rejects are there, and the table is not."""
    code = (
        "import os\nfrom pathlib import Path\nfrom darkroom.pipelines.storage import tables\n"
        "from darkroom.pipelines.storage.store_paths import store_path\n"
        "from tests.pipelines.storage.table_writers import write\n"
        "upload = tables.upload\n"
        "def once(part, to):\n    upload(part, to)\n    os.kill(os.getpid(), 9)\n"
        "tables.upload = once\n"
        f"write(tables.Tables(store_path({url!r}), Path({str(scratch)!r})), [7], [8], inputs='new')\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9


@pytest.mark.soak
def test_a_process_that_is_killed_between_rejects_and_table_leaves_no_table(object_store, tmp_path):
    url = object_store.url("tables")
    tables = Tables(store_path(url), tmp_path)
    killed_between(url, tmp_path)
    assert len(names(tables)) == 1
    assert (tables.exists(KEY), tables.inputs(KEY)) == (False, None)
    write(tables, [7], [8], inputs="new")
    assert len(names(tables)) == 2, "the same rejects have the same name"
    assert tables.inputs(KEY) == "new"


@pytest.mark.soak
def test_a_process_that_is_killed_leaves_the_earlier_table_with_its_rejects(object_store, tmp_path):
    url = object_store.url("tables")
    tables = Tables(store_path(url), tmp_path)
    write(tables, [1], [2], inputs="old")
    killed_between(url, tmp_path)
    assert tables.inputs(KEY) == "old"
    assert [row.source_row for row in tables.read_rejects(KEY)] == ["row/2"]


def test_a_table_whose_rejects_are_gone_is_made_again(tables):
    write(tables, [1], [2], inputs="a")
    tables.rejects_path(KEY).unlink()
    assert tables.inputs(KEY) is None
    with pytest.raises(TableMissing):
        tables.read_rejects(KEY)


@pytest.mark.e2e
def test_two_processes_that_write_one_table_settle_on_the_table_of_one(object_store, tmp_path):
    url = object_store.url("tables")
    reader = Tables(store_path(url), tmp_path)
    write_often(url, tmp_path, 1)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        writers = [processes.submit(write_often, url, tmp_path, n) for n in (1, 2)]
        while not all(writer.done() for writer in writers):
            assert {row.sample_id for row in reader.read(KEY, Sample)} in ({"id1"}, {"id2"})
        for writer in writers:
            writer.result()
    n = reader.n_rows(KEY)
    if reader.inputs(KEY) is None:  # the one deleted rejects that the other came back to: its next run writes them
        write(reader, [n] * n, [n] * (n + 1), inputs=str(n))
    assert reader.inputs(KEY) == str(n)
    assert [row.source_row for row in reader.read_rejects(KEY)] == [f"row/{n}"] * (n + 1)


def test_a_first_table_is_a_question_and_two_uploads_and_what_is_there_is_one_request(s3, tmp_path):
    tables = Tables(store_path(s3.url("tables")), tmp_path)
    with s3_traffic() as traffic:
        write(tables, [1], [2], inputs="a")
        assert traffic.n_requests == 3
        assert (tables.exists(KEY), tables.exists(TableKey(SAMPLES, "other"))) == (True, False)
        assert traffic.n_requests == 5
        assert tables.keys(SAMPLES) == [KEY]
        assert traffic.n_requests == 6
        assert [row.sample_id for row in tables.read(KEY, Sample)] == ["id1"]
        assert traffic.n_requests == 7


def test_what_a_footer_says_is_one_request(s3, tmp_path):
    tables = Tables(store_path(s3.url("tables")), tmp_path)
    facts = {"long": random.Random(0).randbytes(100_000).hex()}
    tables.write(KEY, Sample, [sample(1)], [], inputs="a", facts={})
    tables.write(TableKey(SAMPLES, "longer"), Sample, [sample(1)], [], inputs="a", facts=facts)
    with s3_traffic() as traffic:
        assert tables.n_rows(KEY) == 1
        assert traffic.n_requests == 1
        assert tables.facts(TableKey(SAMPLES, "longer")) == facts
        assert traffic.n_requests == 3
